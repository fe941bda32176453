"""Web pages: the content is found, and is Markdown."""

from __future__ import annotations

import time

import pytest

from ai_platform_engineering.knowledge_bases.rag.readers.reading import ExtractedText, UnreadableDocumentError, read

ADDRESS = "https://docs.example.com/guide/page.html"


def page(markup: str | bytes, *, base_url: str | None = ADDRESS, media_type: str = "text/html") -> ExtractedText:
    return read(markup.encode() if isinstance(markup, str) else markup, media_type, ADDRESS, base_url)


def text(markup: str, base_url: str | None = ADDRESS) -> str:
    return page(markup, base_url=base_url).text


AROUND = """<!doctype html><html><head><title>Remote agents | Docs</title><style>p {color: red}</style>
<script>var tracking = 1;</script></head><body>
<header><h1>The product</h1></header><nav><a href="/">Home</a></nav>
<aside>Related pages</aside><form><input name="q"><label>Search</label></form>
%s
<footer>Copyright</footer><script>more()</script></body></html>"""


@pytest.mark.parametrize(
    "content",
    [
        "<main><h1>Remote agents</h1><p>How they run.</p></main>",
        "<article><header><h1>Remote agents</h1></header><p>How they run.</p><footer>Edit</footer></article>",
        '<div role="main"><h1>Remote agents</h1><p>How they run.</p></div>',
        "<div><h1>Remote agents</h1><p>How they run.</p></div>",
        "<main><nav>Contents</nav><div><h1>Remote agents<a class=headerlink href='#r'>¶</a></h1>"
        "<ul id=table_of_contents><li>Parts</ul><p>How they run.</p></div>"
        "<button>Copy</button><p hidden>Secret</p></main>",
    ],
)
def test_only_the_content_is_read(content: str) -> None:
    assert page(AROUND % content) == ExtractedText("Remote agents", "# Remote agents\n\nHow they run.\n")


def test_an_article_that_is_most_of_the_main_part_is_the_content() -> None:
    listing = "<ul><li>Other page</li></ul>"
    assert "Other" not in text(f"<main>{listing}<article><h1>This</h1><p>{'Long text. ' * 20}</p></article></main>")
    assert "Other" in text(f"<main>{listing * 20}<article><p>Teaser</p></article></main>")


def test_several_articles_are_all_read() -> None:
    assert text("<body><article><p>One</p></article><article><p>Two</p></article></body>") == "One\n\nTwo\n"


def test_notes_are_content_though_they_stand_aside() -> None:
    assert "Mind the gap" in text('<main><p>Text</p><aside class="admonition tip"><p>Mind the gap</p></aside></main>')


def test_a_form_around_the_whole_page_does_not_hide_it() -> None:
    assert text("<body><form><h1>Title</h1><p>Text</p><input></form></body>") == "# Title\n\nText\n"


def test_a_page_of_links_alone_is_read_too() -> None:
    assert "[Guide](https://docs.example.com/guide/a.html)" in text('<nav><a href="a.html">Guide</a></nav>')


@pytest.mark.parametrize("markup", ["", "<html></html>", "<script>x()</script><div id=root></div>", "<!-- -->"])
def test_a_page_without_text_says_so(markup: str) -> None:
    with pytest.raises(UnreadableDocumentError, match=r"page\.html has no text in it; a page that scripts build"):
        page(markup)


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title>Docs</title><main><h1>A <code>b</code></h1></main>", "A b"),
        ("<title>\n Only\n  this </title><p>x</p>", "Only this"),
        ("<svg><title>icon</title></svg><p>x</p>", "Page"),
        ("<p>x</p>", "Page"),
        ("<main><h1> </h1><h2>Second</h2></main>", "Second"),
        ("<title>Docs</title><main><h2>Synopsis</h2></main>", "Docs"),
    ],
)
def test_titles(markup: str, title: str) -> None:
    assert page(f"{markup}<p>text</p>").title == title


@pytest.mark.parametrize(
    ("markup", "language"),
    [
        ('<pre><code class="language-yaml">a: 1</code></pre>', "yaml"),
        ('<pre class="language-yaml"><code>a: 1</code></pre>', "yaml"),
        ('<div class="highlight-yaml notranslate"><div class="highlight"><pre>a: 1</pre></div></div>', "yaml"),
        ('<div class="highlight highlight-source-yaml"><pre>a: 1</pre></div>', "yaml"),
        ('<pre data-lang="yaml">a: 1</pre>', "yaml"),
        ('<div class="highlight-default"><pre>a: 1</pre></div>', ""),
        ("<pre>a: 1</pre>", ""),
    ],
)
def test_code_keeps_its_language(markup: str, language: str) -> None:
    assert text(f"<main>{markup}</main>") == f"```{language}\na: 1\n```\n"


def test_code_keeps_its_lines() -> None:
    code = "def f():\n    return '<b>'\n\n\n\nf()"
    escaped = code.replace("<", "&lt;")

    assert text(f"<main><p>Run:</p><pre>\n{escaped}\n</pre></main>") == f"Run:\n\n```\n{code}\n```\n"


def test_code_with_numbered_lines_loses_the_numbers() -> None:
    numbered = (
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td>'
        '<td class="code"><div><pre><span>a = 1</span>\n<span>b = 2</span></pre></div></td></tr></table>'
    )
    assert text(f"<main>{numbered}</main>") == "```\na = 1\nb = 2\n```\n"


def test_code_made_of_elements_keeps_its_lines() -> None:
    lines = "<span>a = 1<br></span><span>b = 2<br></span>"

    assert text(f"<main><pre><code>{lines}</code></pre></main>") == "```\na = 1\nb = 2\n```\n"


def test_code_with_a_fence_in_it_gets_a_longer_one() -> None:
    assert text("<pre>```\nx\n```</pre>") == "````\n```\nx\n```\n````\n"


def test_the_same_example_in_two_languages_is_two_blocks() -> None:
    markup = '<pre><code class="language-js">a</code><code class="language-ts">b</code></pre>'

    assert text(markup) == "```js\na\n```\n\n```ts\nb\n```\n"


def test_tables() -> None:
    markup = (
        "<table><thead><tr><th>Name<th>Meaning</thead>"
        "<tr><td><code>A|B</code><td>one<br>two<tr><td colspan=900>C<td></table>"
    )
    assert text(markup) == "| Name | Meaning |\n| --- | --- |\n| `A\\|B` | one two |\n| C | |\n"


def test_tables_for_layout_are_no_tables() -> None:
    markup = "<table><tr><td><a href=/>Home</a><td><h1>Title</h1><p>Text</p><pre>x\ny</pre></table>"

    assert text(markup).endswith("# Title\n\nText\n\n```\nx\ny\n```\n")
    assert "|" not in text(markup)


def test_a_table_inside_of_one_for_layout_is_a_table() -> None:
    markup = "<table><tr><td>Menu<td><table><tr><th>A<th>B<tr><td>1<td>2</table></table>"

    assert text(markup) == "Menu\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n"


def test_lists() -> None:
    markup = "<ol start=3><li>three<ul><li>a</li><li>b</li></ul></li><li><p>four</p><pre>x</pre></li></ol>"

    assert text(markup) == "3. three\n   - a\n   - b\n4. four\n\n   ```\n   x\n   ```\n"


def test_tags_that_are_left_open_end_where_the_next_begins() -> None:
    items = "".join(f"<li>item {number}" for number in range(3000))

    assert text(f"<ul>{items}</ul><p>one<p>two<dl><dt>a<dd>b<dt>c<dd>d</dl>").split("\n")[:3000] == [
        f"- item {number}" for number in range(3000)
    ]
    assert text("<p>one<p>two<div>three</div>") == "one\n\ntwo\n\nthree\n"


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("other.html", "[x](https://docs.example.com/guide/other.html)"),
        ("/a b(c)", "[x](https://docs.example.com/a%20b%28c%29)"),
        ("//cdn.example.com/y", "[x](https://cdn.example.com/y)"),
        ("https://example.com/", "[x](https://example.com/)"),
        ("mailto:a@example.com", "[x](mailto:a@example.com)"),
        ("#here", "x"),
        ("javascript:alert(1)", "x"),
        ("data:text/html,x", "x"),
        ("http://[broken", "x"),
        ("", "x"),
    ],
)
def test_links_are_absolute(href: str, expected: str) -> None:
    assert text(f'<p><a href="{href}">x</a></p>') == f"{expected}\n"


def test_links_stay_relative_where_nothing_is_known_of_the_address() -> None:
    assert text('<p><a href="b.html">x</a></p>', base_url=None) == "[x](b.html)\n"


def test_a_page_may_say_where_its_links_start() -> None:
    assert text('<base href="/v2/"><p><a href="b">x</a></p>') == "[x](https://docs.example.com/v2/b)\n"


def test_links_around_blocks_and_in_headings_are_their_text() -> None:
    assert text('<a href="/x"><h2>Card</h2><p>Text</p></a>') == "## Card\n\nText\n"
    assert text('<h2><a href="/x">Card</a></h2>') == "## Card\n"


def test_pictures_are_what_they_say() -> None:
    assert text('<p>a <img src="/i.png" alt="The graph"> <img src="/j.png"> b</p>') == (
        "a ![The graph](https://docs.example.com/i.png) b\n"
    )
    assert text(f'<p><img src="data:image/png;base64,{"A" * 200}" alt="Logo"> text</p>') == "Logo text\n"


def test_names_of_settings_are_not_escaped() -> None:
    assert text("<p>Set RAG_MAX_* and <code>a_b_c</code> * 2</p>") == "Set RAG_MAX_* and `a_b_c` * 2\n"


def test_a_paragraph_does_not_become_a_heading() -> None:
    assert text("<p># not a heading</p>") == "\\# not a heading\n"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("<meta charset=windows-1251><p>Привет</p>".encode("cp1251"), "text/html"),
        (
            '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>Привет</p>'.encode("koi8-r"),
            "text/html",
        ),
        ("<meta charset=utf-8><p>Привет</p>".encode("cp1251"), "text/html; charset=windows-1251"),
        ('<?xml version="1.0" encoding="iso-8859-5"?><p>Привет</p>'.encode("iso8859-5"), "application/xhtml+xml"),
    ],
)
def test_the_charset_is_the_headers_else_the_pages(content: bytes, media_type: str) -> None:
    assert page(content, media_type=media_type).text == "Привет\n"


def test_nothing_is_lost_of_what_is_nested_too_deeply() -> None:
    words = text("".join(f"<div><b>word{number} " for number in range(600))).split()

    assert [word.strip("*") for word in words if word.strip("*")] == [f"word{number}" for number in range(600)]


def test_tags_with_the_names_of_methods_are_only_tags() -> None:
    assert text("<soup>a</soup><fn_cache>b</fn_cache><h1234567>c</h1234567><list>d</list>") == "abcd\n"


@pytest.mark.long
@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 5000 + "deep" + "</div>" * 5000,
        "<?xml <main><p>deep <?xml",
        "<b>deep " * 5000,
        "<ul><li>deep " * 2000,
        "<blockquote>deep " * 2000,
        "<table><tr><td>deep " * 1000,
        "deep<p " * 20_000,
        "deep<p " * 20_000 + ">",
        "deep<p '" * 20_000,
        "deep</p " * 20_000,
        "deep<a b=" * 20_000,
        "deep<?" * 20_000,
        "deep<!--" * 2000,
        "deep" + "<ol>" + "<li>x</li>" * 5000 + "</ol>",
        "deep" + "&" * 50_000,
    ],
    ids=lambda markup: repr(markup[:12]),
)
def test_hostile_pages_take_no_more_than_moments(markup: str) -> None:
    started = time.process_time()

    assert "deep" in text(markup)

    assert time.process_time() - started < 15


def test_markup_that_the_parser_rejects_is_said_to_be_broken() -> None:
    try:
        said = text("deep" + "<![" * 2000)
    except UnreadableDocumentError as error:
        said = str(error)
    # Newer parsers take it.
    assert said.startswith(("deep", f"{ADDRESS} is not HTML that can be read: its markup is broken."))
