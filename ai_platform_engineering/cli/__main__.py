import sys

from ai_platform_engineering.cli import main

sys.exit(main())
