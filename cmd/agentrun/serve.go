package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"
	"go.uber.org/zap"

	"agentrun/handler"
	"agentrun/run/sandbox"
)

func serveCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:  "serve",
		Usage: "serve the API and execute runs",
		// A provider has commas of its own.
		DisableSliceFlagSeparator: true,
		Flags: []cli.Flag{
			dataFlag(),
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8080", Sources: env("listen"), Usage: "the address to serve on", Validator: notEmpty},
			&cli.IntFlag{
				Name: "workers", Value: defaultWorkers(), Sources: env("workers"), Usage: "the most turns at once",
				Validator: atLeast(1),
			},
			&cli.DurationFlag{
				Name: "drain", Value: 30 * time.Second, Sources: env("drain"),
				Usage: "how long turns may go on after SIGTERM", Validator: atLeast(time.Duration(0)),
			},
			providerFlag(),
			sandboxFlag(),
			&cli.StringSliceFlag{
				Name: "allow-read", Sources: env("allow-read"), TakesFile: true, Validator: absolute,
				Usage: "a path of this machine that agent files may ask to read; the variable takes several, with commas",
			},
			&cli.StringFlag{
				Name: "secrets", Sources: env("secrets"), TakesFile: true,
				Usage: "the directory with the secrets of agent files, one file each (else AGENTRUN_SECRET_NAME)",
			},
			&cli.DurationFlag{
				Name: "idle-stop", Sources: env("idle-stop"), Validator: atLeast(time.Duration(0)),
				Usage: "stop runs that have been idle for so long, such as 72h (default: never)",
			},
			&cli.StringFlag{
				Name: "base-url", Sources: env("base-url"), Validator: baseURL,
				Usage: "the address that people reach the server at, such as https://agents.example.org (default: any address of it)",
			},
			&cli.StringSliceFlag{
				Name: "allow-host", Sources: env("allow-host"),
				Usage: "another name that the application may be reached by (repeatable); localhost and addresses always may",
			},
			&cli.Int64Flag{
				Name: "max-body", Value: handler.DefaultMaxBody, Sources: env("max-body"),
				Usage: "the longest request body in bytes", Validator: atLeast(int64(1)),
			},
		},
	}, nil, serve)
}

// makeFirstUser stands before the link that serve prints on an empty directory.
const makeFirstUser = "nobody can sign in yet; make the first user at "

// defaultWorkers leaves room for programs that mostly wait for a model.
func defaultWorkers() int { return max(4, 2*runtime.NumCPU()) }

func serve(ctx context.Context, cmd *cli.Command, _ []string) error {
	ctx, cancel := untilSignal(ctx)
	defer cancel()
	log := newLog()
	providers, err := openProviders(cmd.StringSlice("provider"))
	if err != nil {
		return err
	}
	admin, err := firstUserOf(os.Getenv)
	if err != nil {
		return err
	}
	s, err := startServer(ctx, serverConfig{
		data: cmd.String("data"), listen: cmd.String("listen"), workers: cmd.Int("workers"),
		drain: cmd.Duration("drain"), idleStop: cmd.Duration("idle-stop"), maxBody: cmd.Int64("max-body"),
		sandbox: sandbox.Level(cmd.String("sandbox")), allowRead: separated(cmd.StringSlice("allow-read")), secrets: cmd.String("secrets"),
		providers: providers, baseURL: cmd.String("base-url"), hosts: separated(cmd.StringSlice("allow-host")), admin: admin, log: log,
	})
	if errors.Is(err, context.Canceled) {
		return nil // The signal came before anything was served.
	}
	if err != nil {
		return err
	}
	log.Info("serving", zap.String("data", s.data.path), zap.String("version", buildVersion()))
	s.logSandbox()
	fmt.Fprintf(os.Stderr, "listening on %s\n", s.url())
	if link := s.setupLink(); link != "" {
		fmt.Fprintf(os.Stderr, "%s%s\n", makeFirstUser, link)
	}
	err = s.wait(ctx)
	if errors.Is(err, errStoreFailed) {
		// Nothing is waited for. The agents' programs get their SIGKILL when this
		// process ends.
		return err
	}
	log.Info("draining", zap.Duration("at_most", cmd.Duration("drain")))
	s.stop()
	return err
}

// firstUserOf returns the operator whom the environment names; nil for none. The
// password can be in a file.
func firstUserOf(getenv func(string) string) (*firstUser, error) {
	u := &firstUser{email: getenv("AGENTRUN_ADMIN_EMAIL"), password: getenv("AGENTRUN_ADMIN_PASSWORD")}
	if file := getenv("AGENTRUN_ADMIN_PASSWORD_FILE"); file != "" && u.password == "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, errors.Wrap(err, "AGENTRUN_ADMIN_PASSWORD_FILE")
		}
		u.password = strings.TrimRight(string(text), "\r\n")
	}
	switch {
	case u.email == "" && u.password == "":
		return nil, nil //nolint:nilnil // Nobody is named, which is no error.
	case u.email == "" || u.password == "":
		return nil, errors.New("AGENTRUN_ADMIN_EMAIL and AGENTRUN_ADMIN_PASSWORD go together")
	}
	return u, nil
}

// baseURL refuses what is no address of a server.
func baseURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return misuse(fmt.Sprintf("%q: want an address such as https://agents.example.org", value))
	}
	return nil
}

// separated takes values apart that have several, with commas.
func separated(values []string) []string {
	var all []string
	for _, value := range values {
		all = append(all, strings.Split(value, ",")...)
	}
	return all
}

// absolute refuses paths that mean something else elsewhere.
func absolute(paths []string) error {
	for _, path := range separated(paths) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return misuse(fmt.Sprintf("%q: want an absolute path", path))
		}
	}
	return nil
}

func sandboxFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "sandbox", Value: string(sandbox.Auto), Sources: env("sandbox"),
		Usage: "how commands are confined: auto, full, landlock or off",
		Validator: func(value string) error {
			if slices.Contains(sandbox.Levels, sandbox.Level(value)) {
				return nil
			}
			return misuse("want auto, full, landlock or off")
		},
	}
}

// logSandbox says how commands are confined, loudly when they are not.
func (s *server) logSandbox() {
	level := s.sandbox.Level()
	why := sandbox.Refusal(s.sandbox)
	switch {
	case why != nil:
		s.cfg.log.Error("every command will be refused", zap.Error(why))
	case level == string(sandbox.Off):
		s.cfg.log.Warn("commands are not confined: an agent's program can do what this user can do")
	default:
		s.cfg.log.Info("commands are confined", zap.String("sandbox", level), zap.Int("user", s.sandbox.Owner()))
	}
}

// untilSignal returns a context that ends with the first SIGTERM or SIGINT. The
// second one ends the process at once.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(os.Stderr, "agentrun: ended by a second signal; what was under way is cut off")
		os.Exit(exitFailed)
	}()
	return ctx, cancel
}
