package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	// defaultTimeout is the default time limit of a response.
	defaultTimeout = 5 * time.Second

	// maxAnswerBytes limits the size of a response. A decision on 32 entries has about 10 KiB.
	maxAnswerBytes = 256 * 1024

	// againAfter is the delay before the daemon is asked again.
	againAfter = 100 * time.Millisecond
)

// transient contains the codes that a retry may clear: the resolution exceeds the gate's deadline but continues, or the
// newest block has not confirmed the verdict yet.
var transient = map[string]bool{"deadline-passed": true, "unconfirmed": true}

// anyAgent is the value of Config.Agent that means every seller.
const anyAgent = "any"

// api holds the paths of the guard's questions, and the schema of the answers.
type api struct{ terms, signed, schema string }

// decisions are about one agent, checks about any seller.
var (
	decisions = api{"/v1/decisions", "/v1/decisions/signed", "clresolve.decision/1"}
	checks    = api{"/v1/checks", "/v1/checks", "clresolve.check/1"}
)

// Config names the daemon, and the agent and verb in question.
type Config struct {
	// Daemon is the daemon's URL: http://127.0.0.1:8402, unix:/run/clresolve.sock, or an https URL. Plain http to another
	// machine requires Signer.
	Daemon string
	// Agent is the agent's ENS name in normal form. With "any", every seller is paid whose payee the daemon proves.
	Agent string
	// Name is the seller's ENS name in normal form, if Agent is "any" and you know it: the guard trusts your name, unlike
	// the seller's.
	Name string
	// Verb is the verb to pay for. If Agent is "any", it may be omitted.
	Verb string
	// Limits are stricter than the daemon's, as a JSON object in the format of POST /v1/decisions. They are optional.
	Limits json.RawMessage
	// Timeout limits each response of the daemon; 0 means 5 s.
	Timeout time.Duration
	// RootCAs are trusted for an https daemon; nil means those of the platform.
	RootCAs *x509.CertPool
	// Signer is the expected signer. If set, every decision must be signed with one of its keys. The daemon signs none if
	// Agent is "any".
	Signer *Signer
	// OnPaid receives the record of each payment that was sent, before its response is returned. A panic of it is ignored,
	// so that no paid response is lost. Several goroutines may call it concurrently.
	OnPaid func(Paid)
}

// daemon is the client of the daemon: three kinds of requests, whose responses are only accepted if they are complete.
// It uses its own connections: without the environment's proxy, without redirects, and with a time limit for the whole
// response. Anything but a valid response is a refusal.
type daemon struct {
	base     string
	url      string
	api      api
	question question
	timeout  time.Duration
	signer   *Signer
	line     *http.Transport
}

type question struct {
	Name     string          `json:"name,omitempty"`
	Verb     string          `json:"verb,omitempty"`
	Limits   json.RawMessage `json:"limits,omitempty"`
	URL      string          `json:"url,omitempty"`
	Response *reply          `json:"response"`
	Selected *int            `json:"selected,omitempty"`
	Header   string          `json:"header,omitempty"`
}

func newDaemon(config Config) (*daemon, error) {
	if err := checkWhom(config); err != nil {
		return nil, err
	}
	if config.Timeout < 0 {
		return nil, errors.New("the timeout is not negative")
	}
	timeout := config.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	line := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: config.RootCAs}, DisableCompression: true}
	base, err := baseOf(config.Daemon, config.Signer != nil)
	if err != nil {
		return nil, err
	}
	shown := base
	if socket := strings.TrimPrefix(config.Daemon, "unix:"); socket != config.Daemon {
		shown = config.Daemon
		line.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	api, about := decisions, question{Name: config.Agent, Verb: config.Verb, Limits: config.Limits}
	if config.Agent == anyAgent {
		api, about.Name = checks, config.Name
	}
	return &daemon{base, shown, api, about, timeout, config.Signer, line}, nil
}

// checkWhom checks whom the guard pays: one agent for one verb, or any seller. Only then may the verb be omitted, and a
// seller's name be given.
func checkWhom(config Config) error {
	if config.Agent == "" {
		return errors.New(`agent: expected an ENS name, or "any"`)
	}
	if config.Agent == anyAgent {
		if config.Signer != nil {
			return errors.New(`signer: the daemon signs no answer for the agent "any"`)
		}
		if config.Name == "" {
			return nil
		}
		return checkName("name", config.Name)
	}
	if err := checkName("agent", config.Agent); err != nil {
		return err
	}
	if config.Verb == "" {
		return errors.New("verb must not be empty")
	}
	if config.Name != "" {
		return errors.New(`name: expected only with the agent "any"`)
	}
	return nil
}

// checkName checks the parts of the normal form (ENSIP-15) that need no tables: no ASCII capitals, no spaces, no empty
// labels. A name without a dot is a top-level domain, not an agent.
func checkName(option, name string) error {
	spelt := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.Join(strings.Fields(name), ""))
	labels := strings.FieldsFunc(spelt, func(r rune) bool { return r == '.' })
	switch len(labels) {
	case 0:
		return fmt.Errorf("%s must not be empty", option)
	case 1:
		if option == "agent" && (labels[0] == anyAgent || labels[0] == "*") {
			return errors.New(`agent: did you mean "any"?`)
		}
		labels = append(labels, "eth")
	}
	if meant := strings.Join(labels, "."); name != meant {
		return fmt.Errorf("%s: expected the full ENS name in normal form; did you mean %s?", option, meant)
	}
	return nil
}

// gate returns nil if the gate allows the agent. For any seller there is no gate.
func (d *daemon) gate(caller context.Context) error {
	if d.api == checks {
		return nil
	}
	ctx, cancel := context.WithTimeout(caller, d.timeout)
	defer cancel()
	path := "/v1/gate/" + url.PathEscape(d.question.Name) + "/" + url.PathEscape(d.question.Verb)
	for {
		answer, err := d.exchange(caller, ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if answer.status == http.StatusOK {
			return nil
		}
		if answer.status != http.StatusForbidden {
			return d.failure(fmt.Sprintf("status %d", answer.status), nil)
		}
		if !transient[answer.code] {
			return newError(Denied, []string{answer.code})
		}
		if err := d.pause(caller, ctx); err != nil {
			return err
		}
	}
}

// pause waits until the daemon may be asked again, or returns the refusal if the time is over.
func (d *daemon) pause(caller, ctx context.Context) error {
	select {
	case <-ctx.Done():
		return d.connectionFailure(caller, ctx.Err())
	case <-time.After(againAfter):
		return nil
	}
}

// decide returns the entries of a 402 response that may be paid; at least one.
func (d *daemon) decide(caller context.Context, reply reply) (*allowed, error) {
	decision, err := d.ask(caller, d.api.terms, question{Response: &reply})
	if err != nil {
		return nil, err
	}
	if len(decision.passing) == 0 {
		return nil, newError(Denied, decision.codes)
	}
	return &allowed{reply, decision.passing}, nil
}

// signed asks whether the signed payment matches what is allowed for this entry, and returns the decision.
func (d *daemon) signed(caller context.Context, reply reply, header string, entry int) (*decision, error) {
	decision, err := d.ask(caller, d.api.signed, question{Response: &reply, Selected: &entry, Header: header})
	if err != nil {
		return nil, err
	}
	// A decision that allows another entry does not allow this one.
	if !decision.abort && (len(decision.passing) != 1 || decision.passing[0].index != entry) {
		return nil, d.failure("invalid answer", nil)
	}
	return decision, nil
}

// ask returns a decision. An allowing decision has not expired.
func (d *daemon) ask(caller context.Context, path string, about question) (*decision, error) {
	about.Name, about.Verb, about.Limits = d.question.Name, d.question.Verb, d.question.Limits
	// A decision uses the agent's route instead of the requested URL.
	if d.api == checks {
		about.URL = about.Response.asked
	}
	body, err := json.Marshal(about)
	if err != nil {
		return nil, d.failure("invalid limits", err)
	}
	ctx, cancel := context.WithTimeout(caller, d.timeout)
	defer cancel()
	for {
		decision, err := d.askOnce(caller, ctx, path, body)
		if err != nil || !decision.isTransient() {
			return decision, err
		}
		if err := d.pause(caller, ctx); err != nil {
			return nil, err
		}
	}
}

// isTransient reports whether a retry may turn the denial into a permission.
func (d *decision) isTransient() bool {
	for _, code := range d.codes {
		if transient[code] && len(d.passing) == 0 {
			return true
		}
	}
	return false
}

func (d *daemon) askOnce(caller, ctx context.Context, path string, body []byte) (*decision, error) {
	answer, err := d.exchange(caller, ctx, http.MethodPost, path, body)
	if err != nil {
		return nil, err
	}
	if answer.status != http.StatusOK {
		return nil, d.failure(fmt.Sprintf("status %d", answer.status), nil)
	}
	decision, err := d.read(answer.body, body)
	if err != nil {
		return nil, d.failure("invalid answer", err)
	}
	now := time.Now()
	isOver := !decision.abort && !now.Before(decision.until)
	for _, one := range decision.passing {
		isOver = isOver || !now.Before(one.until)
	}
	if isOver {
		return nil, d.failure("expired decision; check this machine's clock", nil)
	}
	return decision, nil
}

func (d *daemon) read(text, asked []byte) (*decision, error) {
	if d.signer != nil {
		digest := sha256.Sum256(asked)
		opened, err := openJWS(string(text), d.signer, "sha256:"+hex.EncodeToString(digest[:]), time.Now().Unix())
		if err != nil {
			return nil, err
		}
		text = opened
	}
	return readDecision(text, d.api.schema, d.question.Name, d.question.Verb)
}

// answer is the daemon's response; code is the gate's reason.
type answer struct {
	status int
	code   string
	body   []byte
}

func (d *daemon) exchange(caller, ctx context.Context, method, path string, body []byte) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, d.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, d.connectionFailure(caller, err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json")
		if d.signer != nil {
			request.Header.Set("Accept", "application/jose")
		}
	}
	response, err := d.line.RoundTrip(request)
	if err != nil {
		return nil, d.connectionFailure(caller, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, d.connectionFailure(caller, err)
	}
	if len(text) > maxAnswerBytes {
		return nil, d.failure("answer longer than 256 KiB", nil)
	}
	return &answer{response.StatusCode, response.Header.Get("Clresolve-Code"), text}, nil
}

// connectionFailure returns the refusal after an error of the network or of time, or the caller's own reason if the
// caller gave up.
func (d *daemon) connectionFailure(caller context.Context, cause error) error {
	if err := caller.Err(); err != nil {
		return err
	}
	what := "connection failed"
	var late net.Error
	switch {
	case errors.As(cause, &late) && late.Timeout():
		what = "timeout"
	case errors.Is(cause, syscall.ECONNREFUSED):
		what = "connection refused; is `clresolve serve` running?"
	case errors.Is(cause, fs.ErrNotExist):
		what = "no such socket; is `clresolve serve` running?"
	case errors.Is(cause, fs.ErrPermission):
		what = "permission denied"
	}
	return d.failure(what, cause)
}

// failure returns the refusal without a usable answer. It says what happened in fixed words, because the cause may quote
// the daemon's answer.
func (d *daemon) failure(what string, cause error) error {
	return &Error{Code: Unavailable, Cause: cause, detail: fmt.Sprintf(" at %s: %s", d.url, what)}
}

// baseOf checks the daemon's URL. Nobody on the network may be able to change its responses unnoticed: another machine
// requires https or signed decisions.
func baseOf(daemon string, isSigned bool) (string, error) {
	if strings.HasPrefix(daemon, "unix:/") {
		return "http://localhost", nil
	}
	parsed, err := url.Parse(daemon)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return "", errors.New("daemon: expected a URL such as http://127.0.0.1:8402")
	}
	switch {
	case parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return "", errors.New("daemon: the URL may have only an origin and a path")
	case parsed.Scheme == "http" && !isSigned && !isLoopback(parsed.Hostname()):
		return "", errors.New("daemon: not on this machine, so it takes https, or the signer of its decisions")
	}
	return strings.TrimSuffix(parsed.String(), "/"), nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && !address.Is4In6() && address.Zone() == "" && address.IsLoopback()
}
