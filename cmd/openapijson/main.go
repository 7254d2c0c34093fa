// Command openapijson writes an OpenAPI document from YAML as JSON, keeping the
// order of its keys and leaving out the keys that only the code generator reads
// (x-ogen-*). It runs under `go generate` and is no part of the product.
//
//	openapijson IN.yaml OUT.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/go-faster/errors"
	"github.com/go-faster/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: openapijson IN.yaml OUT.json")
		os.Exit(2)
	}
	if err := convert(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "openapijson:", err)
		os.Exit(1)
	}
}

func convert(in, out string) error {
	src, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return errors.Wrap(err, in)
	}
	var compact, indented bytes.Buffer
	if err := write(&compact, &doc); err != nil {
		return errors.Wrap(err, in)
	}
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return errors.Wrap(err, in)
	}
	indented.WriteByte('\n')
	return os.WriteFile(out, indented.Bytes(), 0o644)
}

// write appends node as compact JSON, mappings in the order of the source.
func write(w *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.DocumentNode:
		return write(w, node.Content[0])
	case yaml.AliasNode:
		return write(w, node.Alias)
	case yaml.SequenceNode:
		return writeSequence(w, node)
	case yaml.MappingNode:
		return writeMapping(w, node)
	default:
		return writeScalar(w, node)
	}
}

func writeSequence(w *bytes.Buffer, node *yaml.Node) error {
	w.WriteByte('[')
	for i, item := range node.Content {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := write(w, item); err != nil {
			return err
		}
	}
	w.WriteByte(']')
	return nil
}

func writeMapping(w *bytes.Buffer, node *yaml.Node) error {
	w.WriteByte('{')
	written := 0
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if strings.HasPrefix(key.Value, "x-ogen-") {
			continue
		}
		if written > 0 {
			w.WriteByte(',')
		}
		written++
		// A key such as 200 is a number in YAML and a string in JSON.
		if err := writeJSON(w, key.Value); err != nil {
			return err
		}
		w.WriteByte(':')
		if err := write(w, value); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func writeScalar(w *bytes.Buffer, node *yaml.Node) error {
	var value any
	if err := node.Decode(&value); err != nil {
		return errors.Wrapf(err, "line %d", node.Line)
	}
	return writeJSON(w, value)
}

func writeJSON(w *bytes.Buffer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
