package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v3"
)

// version is set when a release is built (-ldflags "-X main.version=v1.2.3").
var version = ""

func versionCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:  "version",
		Usage: "print version, commit and Go version",
	}, nil, func(_ context.Context, cmd *cli.Command, _ []string) error {
		_, err := fmt.Fprintf(cmd.Root().Writer, "agentrun %s, commit %s, %s %s/%s\n",
			buildVersion(), buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}

func buildVersion() string {
	if version != "" {
		return version
	}
	return "dev"
}

func buildCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commit, suffix := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			suffix = " (modified)"
		}
	}
	return commit + suffix
}
