package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

const defaultData = "./agentrun-data"

// env returns the environment twin of a flag.
func env(flag string) cli.ValueSourceChain {
	return cli.NewValueSourceChain(twin("AGENTRUN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))))
}

// twin is an environment variable that stands for a flag. An empty one counts
// as none: an empty AGENTRUN_LISTEN must not mean every address of the host.
type twin string

var (
	_ cli.ValueSource    = twin("")
	_ cli.EnvValueSource = twin("")
)

// Lookup implements cli.ValueSource.
func (t twin) Lookup() (string, bool) {
	value := os.Getenv(string(t))
	return value, value != ""
}

// IsFromEnv and Key implement cli.EnvValueSource, for the help.
func (t twin) IsFromEnv() bool { return true }

// Key is the variable's name.
func (t twin) Key() string { return string(t) }

func (t twin) String() string { return fmt.Sprintf("environment variable %q", string(t)) }

// GoString implements fmt.GoStringer.
func (t twin) GoString() string { return fmt.Sprintf("twin(%q)", string(t)) }

// notEmpty refuses a flag that was given without a value.
func notEmpty(value string) error {
	if value == "" {
		return misuse("it is empty")
	}
	return nil
}

// atLeast refuses smaller values.
func atLeast[N cmp.Ordered](least N) func(N) error {
	return func(n N) error {
		if n < least {
			return misuse(fmt.Sprintf("want %v or more", least))
		}
		return nil
	}
}

func dataFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "data", Value: defaultData, Sources: env("data"), Usage: "the data directory", TakesFile: true,
		Validator: notEmpty,
	}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Sources: env("json"), Usage: "print one JSON document"}
}

// managementFlags are on every management command.
func managementFlags(more ...cli.Flag) []cli.Flag {
	return slices.Concat([]cli.Flag{dataFlag(), jsonFlag()}, remoteFlags(), more)
}
