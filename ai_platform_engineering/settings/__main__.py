import sys

from ai_platform_engineering.settings import configuration_page

sys.stdout.write(configuration_page())
