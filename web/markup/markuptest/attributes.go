package markuptest

import "strings"

var (
	aLot = strings.Repeat("a", 3000)
	deep = strings.Repeat("> ", 600)
)

// attributes run a script by an attribute of a tag, or get out of an attribute
// in which the page shows them.
var attributes = []Payload{
	{"img-onerror", `<img src=x onerror=xss()>`},
	{"img-onerror-quoted", `<img src="x" onerror="xss()">`},
	{"img-onerror-slash", `<img/src=x/onerror=xss()>`},
	{"img-onerror-upper", `<IMG SRC=x ONERROR=xss()>`},
	{"img-onerror-newline", "<img\nsrc=x\nonerror\n=\nxss()>"},
	{"img-onerror-formfeed", "<img\fsrc=x\fonerror=xss()>"},
	{"img-onerror-entity", `<img src=x onerror="&#120;ss();xss()">`},
	{"img-onerror-backtick", "<img src=`x` onerror=xss()>"},
	{"img-unclosed", `<img src=x onerror=xss() `},
	{"img-broken-quote", `<img """><img src=x onerror=xss()>"`},
	{"image-tag", `<image src=x onerror=xss()>`},
	{"body-onload", `<body onload=xss()>`},
	{"body-onpageshow", `<body onpageshow=xss()>`},
	{"details-ontoggle", `<details open ontoggle=xss()>text</details>`},
	{"input-onfocus", `<input autofocus onfocus=xss()>`},
	{"textarea-onfocus", `<textarea autofocus onfocus=xss()></textarea>`},
	{"select-onfocus", `<select autofocus onfocus=xss()></select>`},
	{"video-onerror", `<video><source onerror=xss()></video>`},
	{"audio-onerror", `<audio src=x onerror=xss()>`},
	{"marquee-onstart", `<marquee onstart=xss()>text</marquee>`},
	{"popover-toggle", `<button popovertarget=p>x</button><p popover id=p onbeforetoggle=xss()>y</p>`},
	{"onpointer", `<p onpointerenter=xss()>hover</p>`},
	{"onanimation", `<style>@keyframes x{}</style><p style="animation-name:x" onanimationstart=xss()>text</p>`},
	{"contenteditable", `<p contenteditable autofocus onfocus=xss() tabindex=0>text</p>`},
	{"accesskey", `<a accesskey=x onclick=xss() href="#">text</a>`},
	{"out-of-double", `" onmouseover="xss()" x="`},
	{"out-of-single", `' onmouseover='xss()' x='`},
	{"out-of-double-tag", `"><script>xss()</script>`},
	{"out-of-single-tag", `'><script>xss()</script>`},
	{"out-of-unquoted", `x onfocus=xss() autofocus tabindex=1`},
	{"out-of-backtick", "` onmouseover=xss() `"},
	{"out-of-both", `'"--></style></script><svg onload=xss()>`},
	{"info-string", "```\" onmouseover=\"xss()\nx\n```"},
	{"info-string-class", "```go\"><img/src=x/onerror=xss()>\nx\n```"},
	{"info-string-entity", "```go&quot;&#32;onclick=&quot;xss()\nx\n```"},
	{"heading-attributes", "# a {onclick=xss() id=x}"},
	{"heading-quote", `# a {title="\" onclick=xss()"}`},
	{"list-start", `99999999999999999999" onclick="xss(). a`},
	{"link-title", `[a](http://x.invalid/ "\" onmouseover=xss() ")`},
	{"link-title-entity", `[a](http://x.invalid/ "&quot; onmouseover=xss() x=&quot;")`},
	{"link-url-quote", `[a](http://x.invalid/"onmouseover="xss())`},
	{"link-url-entity", `[a](<http://x.invalid/&quot; onmouseover=&quot;xss()>)`},
	{"image-alt", `!["onerror="xss()](x)`},
	{"image-title", `![a](x "\" onerror=xss() ")`},
	{"autolink-quote", `http://x.invalid/"onmouseover="xss()`},
	{"autolink-angle", `<http://x.invalid/"onmouseover="xss()>`},
	{"dom-name", `<form name=xss><input name=attributes></form><a id=document href=javascript:xss()>a</a>`},
	{"dom-heading", "# location\n\n<a id=location name=href href=javascript:xss()>a</a>"},
}
