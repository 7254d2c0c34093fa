package main

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"

	"agentrun/run"
	"agentrun/run/model"
	"agentrun/run/model/anthropic"
	"agentrun/run/model/openai"
	"agentrun/run/model/script"
	"agentrun/web"
)

// providerSyntax is what --provider takes.
const providerSyntax = "NAME=openai|anthropic,BASE_URL or NAME=script,DIR, and then any of window=TOKENS, silence=DURATION and price=[MODEL:]INPUT/OUTPUT (US dollars per million tokens)"

func providerFlag() cli.Flag {
	return &cli.StringSliceFlag{
		Name: "provider", Sources: env("provider"),
		Usage: "where models are (repeatable; the variable takes one a line): " + providerSyntax,
		Validator: func(values []string) error {
			_, err := parseProviders(values)
			return err
		},
	}
}

// provider is a provider as it is configured, but for its key.
type provider struct {
	name, dialect, base string
	window              int64
	// silence is how long it may say nothing; 0 means the clients' own bounds.
	silence time.Duration
	prices  []run.ModelPrice
}

var providerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// parseProviders reads the values of the flag, of which each may have several
// lines.
func parseProviders(values []string) ([]provider, error) {
	var all []provider
	for _, value := range values {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			p, err := parseProvider(line)
			if err == nil && slices.ContainsFunc(all, func(other provider) bool { return other.name == p.name }) {
				err = errors.New("the name is given twice")
			}
			if err != nil {
				return nil, misuse(fmt.Sprintf("%q: %v; want %s", line, err, providerSyntax))
			}
			all = append(all, p)
		}
	}
	return all, nil
}

func parseProvider(line string) (provider, error) {
	name, rest, _ := strings.Cut(line, "=")
	parts := strings.Split(rest, ",")
	if !providerName.MatchString(name) || len(parts) < 2 || parts[1] == "" {
		return provider{}, errors.New("it has not all parts")
	}
	p := provider{name: name, dialect: parts[0], base: parts[1]}
	if !slices.Contains([]string{"openai", "anthropic", "script"}, p.dialect) {
		return provider{}, errors.Errorf("no dialect %q", p.dialect)
	}
	for _, part := range parts[2:] {
		option, value, _ := strings.Cut(part, "=")
		switch option {
		case "window":
			tokens, err := strconv.ParseInt(value, 10, 64)
			if err != nil || tokens < 1 {
				return provider{}, errors.Errorf("window %q is no number of tokens", value)
			}
			p.window = tokens
		case "silence":
			silence, err := time.ParseDuration(value)
			if err != nil || silence <= 0 {
				return provider{}, errors.Errorf("silence %q is no duration such as 5m", value)
			}
			p.silence = silence
		case "price":
			price, err := parsePrice(value)
			if err != nil {
				return provider{}, err
			}
			p.prices = append(p.prices, price)
		default:
			return provider{}, errors.Errorf("no option %q", option)
		}
	}
	return p, nil
}

// parsePrice reads [MODEL:]INPUT/OUTPUT or [MODEL:]INPUT/CACHED/OUTPUT.
func parsePrice(text string) (run.ModelPrice, error) {
	price := run.ModelPrice{Models: "*"}
	amounts := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		price.Models, amounts = text[:i], text[i+1:]
	}
	var each []float64
	for _, amount := range strings.Split(amounts, "/") {
		v, err := strconv.ParseFloat(amount, 64)
		if err != nil || !(v >= 0 && v < 1e6) {
			return price, errors.Errorf("price: %q is no amount of US dollars", amount)
		}
		each = append(each, v)
	}
	switch len(each) {
	case 2:
		price.Price = model.Price{Input: each[0], Cached: each[0], Output: each[1]}
	case 3:
		price.Price = model.Price{Input: each[0], Cached: each[1], Output: each[2]}
	default:
		return price, errors.Errorf("price: want INPUT/OUTPUT, have %q", amounts)
	}
	return price, nil
}

// usualProviders are there as soon as their key is.
var usualProviders = []struct{ name, dialect, base, key string }{
	{"openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"},
	{"anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"},
}

// openProviders returns the configured providers by their names. Keys come from
// the environment or from files alone.
func openProviders(values []string) (map[string]run.Provider, error) {
	configured, err := parseProviders(values)
	if err != nil {
		return nil, err
	}
	all := map[string]run.Provider{}
	for _, p := range configured {
		key, err := providerKeyOf(p.name)
		if err == nil {
			all[p.name], err = p.open(key)
		}
		if err != nil {
			return nil, errors.Wrapf(err, "provider %s", p.name)
		}
	}
	for _, u := range usualProviders {
		key := os.Getenv(u.key)
		if _, taken := all[u.name]; taken || key == "" {
			continue
		}
		if all[u.name], err = (provider{name: u.name, dialect: u.dialect, base: u.base}).open(key); err != nil {
			return nil, errors.Wrapf(err, "%s", u.key)
		}
	}
	return all, nil
}

// providerKeyOf returns the key of a provider; empty when it has none.
func providerKeyOf(name string) (string, error) {
	variable := "AGENTRUN_PROVIDER_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name)) + "_KEY"
	if key := os.Getenv(variable); key != "" {
		return key, nil
	}
	if file := os.Getenv(variable + "_FILE"); file != "" {
		text, err := os.ReadFile(file)
		return strings.TrimSpace(string(text)), err
	}
	for _, u := range usualProviders {
		if u.name == name {
			return os.Getenv(u.key), nil
		}
	}
	return "", nil
}

func (p provider) open(key string) (run.Provider, error) {
	var client model.Client
	var err error
	upstream := &run.Upstream{Dialect: p.dialect, BaseURL: p.base, Key: key}
	switch p.dialect {
	case "openai":
		client, err = openai.New(openai.Config{BaseURL: p.base, Key: key, FirstByte: p.silence, BetweenBytes: p.silence})
	case "anthropic":
		client, err = anthropic.New(anthropic.Config{BaseURL: p.base, Key: key, FirstByte: p.silence, BetweenBytes: p.silence})
	default:
		client, err = script.New(p.base)
		upstream = nil // It speaks no HTTP.
	}
	return run.Provider{Client: client, Upstream: upstream, Window: p.window, Prices: p.prices}, err
}

// shownProviders are the providers as the application shows them, by name. An
// address has no user and password in it there.
func shownProviders(providers map[string]run.Provider) []web.Provider {
	shown := make([]web.Provider, 0, len(providers))
	for _, name := range providerNames(providers) {
		p := web.Provider{Name: name, Dialect: "script"}
		if up := providers[name].Upstream; up != nil {
			p.Dialect = up.Dialect
			if base, err := url.Parse(up.BaseURL); err == nil {
				base.User = nil
				p.BaseURL = base.String()
			}
		}
		shown = append(shown, p)
	}
	return shown
}

// providerNames are the names of providers, sorted.
func providerNames(providers map[string]run.Provider) []string {
	return slices.Sorted(maps.Keys(providers))
}
