package handler

import (
	"strings"

	"github.com/go-faster/jx"
)

// bodyIssues returns everything that is wrong with the body of a POST, in the
// order and the words of FastAPI with pydantic 2. It computes the list anew
// from the text, because the generated decoder stops at the first fault, and is
// therefore for bodies that were refused or that look odd. An empty list means
// that the body is right by the contract.
func bodyIssues(contentType string, body []byte) []issue {
	if len(body) == 0 {
		return []issue{fieldRequired.about(jsonNull, "body")}
	}
	if !jsonContentType(contentType) {
		return []issue{notAnObject.about(echoText(body), "body")}
	}
	if at, fault := jsonFault(body); fault != "" {
		return []issue{invalidJSON(at, fault)}
	}
	if jx.Raw(body).Type() == jx.Null {
		return []issue{fieldRequired.about(jsonNull, "body")}
	}
	return schemaIssues(body)
}

// unreadableBody is the answer to a body that the generated decoder refused
// although bodyIssues finds no fault: the decoder also checks a value that a
// later one under the same name replaces.
var unreadableBody = []issue{invalidJSON(0, "a field is given twice, and its first value is not valid")}

// jsonContentType reports whether a body under this Content-Type is read as
// JSON. Parameters do not count, not even malformed ones.
func jsonContentType(header string) bool {
	mediaType, _, _ := strings.Cut(header, ";")
	main, sub, _ := strings.Cut(strings.ToLower(strings.TrimSpace(mediaType)), "/")
	if main != "application" || strings.Contains(sub, "/") {
		return false
	}
	return sub == "json" || strings.HasSuffix(sub, "+json")
}

// pathIssues returns what is wrong with the run ID of a GET, percent-decoded.
func pathIssues(segment string) []issue {
	if acceptedUUID(segment) {
		return nil
	}
	// A path can hold bytes that are no text; the answer cannot.
	segment = string([]rune(segment))
	return []issue{invalidUUID(uuidFault(segment)).about(echoText([]byte(segment)), "path", "agent_id")}
}
