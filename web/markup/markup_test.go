package markup_test

import (
	"html"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/web/markup"
)

const outside = ` rel="nofollow noreferrer noopener" target="_blank"`

// pages are texts with what is shown for them.
var pages = []struct{ name, text, want string }{
	{"nothing", "", ""},
	{"paragraphs", "one\ntwo  \nthree\n\nfour", "<p>one\ntwo<br>\nthree</p>\n<p>four</p>\n"},
	{"headings", "# a\n## b\n### c\n#### d\n##### e\n###### f\n",
		"<h3>a</h3>\n<h4>b</h4>\n<h5>c</h5>\n<h6>d</h6>\n<h6>e</h6>\n<h6>f</h6>\n"},
	{"underlined headings", "a\n===\n\nb\n---\n", "<h3>a</h3>\n<h4>b</h4>\n"},
	{"emphasis", "*a* **b** ~~c~~ `d` ***e***",
		"<p><em>a</em> <strong>b</strong> <del>c</del> <code>d</code> <em><strong>e</strong></em></p>\n"},
	{"code", "```go\nif a < b && c {\n```\n", "<pre><code class=\"language-go\">if a &lt; b &amp;&amp; c {\n</code></pre>\n"},
	{"code of C++", "```c++\na\n```\n", "<pre><code class=\"language-c++\">a\n</code></pre>\n"},
	{"code of nothing known", "```a\"b\nc\n```\n", "<pre><code>c\n</code></pre>\n"},
	{"indented code", "    a\n", "<pre><code>a\n</code></pre>\n"},
	{"quote", "> a\n> > b\n", "<blockquote>\n<p>a</p>\n<blockquote>\n<p>b</p>\n</blockquote>\n</blockquote>\n"},
	{"lists", "- a\n  - b\n\n3. c\n4. d\n",
		"<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>\n<ol start=\"3\">\n<li>c</li>\n<li>d</li>\n</ol>\n"},
	{"tasks", "- [ ] a\n- [x] b\n", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n"},
	{"rule", "a\n\n---\n", "<p>a</p>\n<hr>\n"},
	{"table", "| a | b | c |\n|:--|--:|:-:|\n| 1 | `x\\|y` | |\n",
		"<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n<th align=\"center\">c</th>\n</tr>\n</thead>\n" + //nolint:misspell // HTML's spelling.
			"<tbody>\n<tr>\n<td align=\"left\">1</td>\n<td align=\"right\"><code>x|y</code></td>\n<td align=\"center\"></td>\n</tr>\n" + //nolint:misspell // HTML's spelling.
			"</tbody>\n</table>\n"},
	{"table without outer bars", "a | b\n--|--\n1 | 2\n",
		"<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n"},
	{"link", "[a](https://x.example/b?c=d&e#f)", `<p><a href="https://x.example/b?c=d&amp;e#f"` + outside + ">a</a></p>\n"},
	{"link with a title", `[a](http://x.example "b")`, `<p><a href="http://x.example"` + outside + ">a</a></p>\n"},
	{"reference", "[a]\n\n[a]: http://x.example\n", `<p><a href="http://x.example"` + outside + ">a</a></p>\n"},
	{"bare links", "http://x.example www.x.example <https://x.example>",
		`<p><a href="http://x.example"` + outside + `>http://x.example</a> <a href="http://www.x.example"` + outside +
			`>www.x.example</a> <a href="https://x.example"` + outside + ">https://x.example</a></p>\n"},
	{"mail", "<a@x.example> [b](mailto:b@x.example)",
		"<p><a href=\"mailto:a@x.example\" rel=\"nofollow noreferrer\">a@x.example</a> " +
			"<a href=\"mailto:b@x.example\" rel=\"nofollow noreferrer\">b</a></p>\n"},
	{"links that lead nowhere", "[a](b) [c](/d) [e](#f) [g](//h.example) [i](javascript:j) [k](ftp://l) [m](http:n) <tel:1>",
		"<p>a c e g i k m tel:1</p>\n"},
	{"link with a password", "[a](http://b:c@x.example/)", "<p>a</p>\n"},
	{"image", "![a *b*](http://x.example/c.png)", `<p><a href="http://x.example/c.png"` + outside + ">a <em>b</em></a></p>\n"},
	{"image without a text", "![](http://x.example/c.png) ![](c.png)",
		`<p><a href="http://x.example/c.png"` + outside + ">http://x.example/c.png</a> c.png</p>\n"},
	{"image of a file", "![a](b.png) ![c](data:image/png;base64,AA==)", "<p>a c</p>\n"},
	{"image in a link", "[![a](http://x.example/b)](http://x.example/c)", `<p><a href="http://x.example/c"` + outside + ">a</a></p>\n"},
	{"link in an image", "![a [b](http://x.example/c)](http://x.example/d)",
		`<p><a href="http://x.example/d"` + outside + ">a b</a></p>\n"},
	{"link in an image of a file", "![a [b](http://x.example/c)](d.png)",
		`<p>a <a href="http://x.example/c"` + outside + ">b</a></p>\n"},
	{"tags", "a<br>b <!-- c -->\n\n<div>\n*d*\n</div>\n",
		"<p>a&lt;br&gt;b &lt;!-- c --&gt;</p>\n<p>&lt;div&gt;\n<em>d</em>\n&lt;/div&gt;</p>\n"},
	{"entities", "&lt;b&gt; &amp;amp; &copy; &#x202e;&#27;&#0;", "<p>&lt;b&gt; &amp;amp; © \ufffd\ufffd\ufffd</p>\n"},
	{"controls", "\x1b[1ma\x1b[0m \u202eb\x00\r\nc", "<p>a \ufffdb\ufffd\nc</p>\n"},
	{"backslashes", `\*a\* \<b>`, "<p>*a* &lt;b&gt;</p>\n"},
}

func TestMarkdown(t *testing.T) {
	for _, tt := range pages {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(markup.Markdown(tt.text))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMarkdownOverItsBounds(t *testing.T) {
	preformatted := func(text string) string { return "<pre>\n" + html.EscapeString(text) + "</pre>" }
	long := strings.Repeat("<b> *a*\n", markup.MaxMarkdown/8)
	refs := "[a]: http://x.example/" + strings.Repeat("u", 2000) + "\n\n" + strings.Repeat("[a]\n\n", 1000)
	paragraph := strings.Repeat("*a* <b>\n", 600)
	wide := strings.Repeat("|a", 100) + "\n" + strings.Repeat("|-", 100) + "\n" + strings.Repeat("|\n", 100)
	for _, tt := range []struct{ name, text, want string }{
		{"a text at the bound", strings.Repeat("a\n\n", markup.MaxMarkdown/3), strings.Repeat("<p>a</p>\n", markup.MaxMarkdown/3)},
		{"a long text", "\n" + long, preformatted("\n" + long)},
		{"long references", refs, preformatted(refs)},
		{"a long paragraph", "*b*\n\n" + paragraph, "<p><em>b</em></p>\n<pre><code>" + html.EscapeString(paragraph) + "</code></pre>\n"},
		{"a long heading", "# " + strings.Repeat("*a* ", 1500), "<pre><code># " + strings.Repeat("*a* ", 1500) + "</code></pre>\n"},
		{"a table of empty cells", wide, "<p>" + strings.TrimSuffix(wide, "\n") + "</p>\n"},
		{"a long link", "[a](http://x.example/" + strings.Repeat("u", 3000) + ")", "<p>a</p>\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(markup.Markdown(tt.text))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if depth := strings.Count(string(markup.Markdown(strings.Repeat("> ", 1000)+"a")), "<blockquote>"); depth != 40 {
		t.Errorf("quotes %d deep", depth)
	}
}

func TestTerminal(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"text", "a\tb\n\nü\U0001f642", "a\tb\n\nü\U0001f642"},
		{"colours", "\x1b[31ma\x1b[0m\x1b[38;2;1;2;3mb\x1b[m", "ab"},
		{"cursor", "a\x1b[2K\x1b[1Ab\x1b[?25l\x1b[>c\x1b[!p", "ab"},
		{"title", "\x1b]0;a title\ab\x1b]2;c\x1b\\d", "bd"},
		{"link", "\x1b]8;;http://x.example\x1b\\a\x1b]8;;\x1b\\b", "ab"},
		{"C1", "\u009b1ma\u009d0;b\u009cc\u0085", "ac\ufffd"},
		{"device and application strings", "\x1bPa\x1b\\b\x1b_c\x1b\\d\x1b^e\x1b\\f\x1bXg\x1b\\h", "bdfh"},
		{"short sequences", "\x1b(Ba\x1b=b\x1b7c\x1bMd\x1b#8e\x1bcf", "abcdef"},
		{"a link without an end", "\x1b]8;;a\nb", "\ufffd]8;;a\nb"},
		{"a link with a link in it", "\x1b]8;;a\x1b]8;;b\ac", "\ufffd]8;;ac"},
		{"a colour without an end", "\x1b[31\na\x1b[", "\ufffd[31\na\ufffd["},
		{"a lonely escape", "a\x1b", "a\ufffd"},
		{"an escape twice", "\x1b\x1b[1ma", "\ufffda"},
		{"line ends", "a\r\nb\rc\r\r\nd\r", "a\nb\nc\nd\n"},
		{"controls", "a\x00b\bc\ad\x7fe\vf", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf"},
		{"order", "a\u202eb\u202c\u2066c\u2069", "a\ufffdb\ufffd\ufffdc\ufffd"},
		{"marks of languages from right to left", "\u200fא\u200e", "\u200fא\u200e"},
		{"broken UTF-8", "a\xff\xc3b\x9b1m", "a\ufffd\ufffdb\ufffd1m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, markup.Terminal(tt.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
