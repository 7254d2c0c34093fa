package tool

import "github.com/go-faster/errors"

// ErrUnknownTool says that there is no tool of a name. Open returns it, with the
// name and those that there are.
var ErrUnknownTool = errors.New("no such tool")
