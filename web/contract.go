package web

import _ "embed"

// Contract is the management contract in JSON, made of openapi.yaml by
// `go generate`. It must not be changed.
//
//go:embed openapi.json
var Contract []byte
