package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// maxPasswordLine bounds a line with a password, in bytes; the API takes fewer.
const maxPasswordLine = 4 << 10

// readPassword returns the password for somebody: a line of standard input, or,
// at a terminal, what is typed twice and not shown.
func readPassword(whose string) (string, error) {
	in := bufio.NewReader(io.LimitReader(os.Stdin, maxPasswordLine))
	if !isTerminal(os.Stdin) {
		return passwordLine(in)
	}
	show, err := hideTyping(os.Stdin)
	if err != nil {
		return "", err
	}
	defer show()
	first, err := prompt(in, fmt.Sprintf("Password for %s: ", printable(whose)))
	if err != nil {
		return "", err
	}
	again, err := prompt(in, "The same again: ")
	if err == nil && first != again {
		err = errors.New("the two passwords differ, and nothing was done")
	}
	return first, err
}

func prompt(in *bufio.Reader, text string) (string, error) {
	fmt.Fprint(os.Stderr, text)
	line, err := passwordLine(in)
	fmt.Fprintln(os.Stderr)
	return line, err
}

// passwordLine reads a line; the last one may lack its end.
func passwordLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", errors.Wrap(err, "standard input")
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("no password: want it as a line of standard input")
	}
	return line, nil
}

// hideTyping turns off that a terminal shows what is typed, until the function
// that it returns is called, or a signal ends the process.
func hideTyping(terminal *os.File) (show func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return nil, err
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	restore := func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, before) }
	go func() {
		select {
		case <-signals:
			restore()
			fmt.Fprintln(os.Stderr, "\nagentrun: interrupted, and nothing was done")
			os.Exit(exitFailed)
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		restore()
	}, nil
}
