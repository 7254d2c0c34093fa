// Package agentrun holds the go:generate lines of the module and nothing else:
// `go generate ./...` rebuilds everything that is made from the two contracts,
// openapi.yaml (the public API) and web/openapi.yaml (the management API).
package agentrun

//go:generate go tool ogen --clean --config .ogen.yml --target gen --package gen openapi.yaml
//go:generate go run ./cmd/openapijson openapi.yaml handler/openapi.json
//go:generate go run ./cmd/openapijson web/openapi.yaml web/openapi.json
//go:generate go tool ogen --clean --config .ogen.yml --target web/gen --package gen web/openapi.yaml
