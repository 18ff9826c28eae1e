// Package guard keeps an x402 payment client from paying what clresolve did not allow.
//
// A [Transport] sits between the payment client and the network. It sees every request, every response and the signed
// payment exactly as they are sent and received. It asks the clresolve daemon about each of them, and sends no payment
// that the daemon did not allow. It does not parse payment terms itself: it forwards the seller's response to the
// daemon unchanged, except for the payment challenges of other protocols. README.md lists the rules.
package guard

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// maxReplyBytes is the maximum size of a 402 body. The daemon refuses a larger one.
	maxReplyBytes = 64 * 1024

	// maxReadTime is the maximum time for reading the body of a 402.
	maxReadTime = 10 * time.Second

	// maxWaiting is the maximum number of pending decisions, of at most about 100 KiB each. Beyond it, the oldest are
	// dropped.
	maxWaiting = 256

	// maxQuestions is the maximum number of requests to the daemon per payment header. A 402 response has at most 32
	// entries, usually one or two.
	maxQuestions = 32
)

// paymentHeaders carry a payment, in x402 versions 2 and 1.
var paymentHeaders = []string{"Payment-Signature", "X-Payment"}

// settlementHeaders are the response headers that describe the settlement, in x402 versions 2 and 1.
var settlementHeaders = []string{"Payment-Response", "X-Payment-Response"}

// Paid holds the documents of a payment that was sent, as input for `clresolve receipt verify`.
type Paid struct {
	// URL is the URL that was paid for.
	URL string `json:"url"`
	// Decision is the daemon's decision that allowed the payment, for --decision.
	Decision json.RawMessage `json:"decision"`
	// Payment is the payment header, for --payment.
	Payment string `json:"payment"`
	// Settlement is the header PAYMENT-RESPONSE or X-PAYMENT-RESPONSE, for --settlement. It is empty if there was no such
	// header, or no response.
	Settlement string `json:"settlement,omitempty"`
}

// Transport is an [http.RoundTripper] that asks the daemon before it sends a request, and sends a payment only for
// terms that the daemon allowed. Otherwise it returns an [*Error]. It is safe for concurrent use.
type Transport struct {
	inner   http.RoundTripper
	daemon  *daemon
	onPaid  func(Paid)
	waiting waiting
}

// New returns a guard above inner, which sends the allowed requests. If inner is nil, it is [http.DefaultTransport].
//
// It returns an error if the configuration is invalid or unsafe.
func New(inner http.RoundTripper, config Config) (*Transport, error) {
	if inner == nil {
		inner = http.DefaultTransport
	}
	daemon, err := newDaemon(config)
	if err != nil {
		return nil, err
	}
	return &Transport{inner: inner, daemon: daemon, onPaid: config.OnPaid, waiting: waiting{now: time.Now}}, nil
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.guarded(request)
	if err != nil && request.Body != nil {
		request.Body.Close()
	}
	return response, err
}

func (t *Transport) guarded(request *http.Request) (*http.Response, error) {
	inBody, err := bodyCarriesCredential(request)
	if err != nil {
		return nil, err
	}
	if inBody || carriesCredentials(request.Header) {
		return nil, &Error{Code: OtherProtocol}
	}
	switch payments := paymentsIn(request.Header); len(payments) {
	case 0:
		return t.browse(request)
	case 1:
		return t.pay(request, payments[0])
	default:
		return nil, &Error{Code: TwoPayments}
	}
}

// browse sends a request without a payment: it asks the gate first, if there is one, and submits the terms
// of a 402 response.
func (t *Transport) browse(request *http.Request) (*http.Response, error) {
	if err := t.daemon.gate(request.Context()); err != nil {
		return nil, err
	}
	response, err := t.inner.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if isRedirect(response.StatusCode) || isElsewhere(request, response) {
		response.Body.Close()
		return nil, &Error{Code: Redirected}
	}
	clean(response)
	if response.StatusCode != http.StatusPaymentRequired {
		return response, nil
	}
	body, err := bodyOf(response)
	response.Body.Close()
	if err != nil {
		if caller := request.Context().Err(); caller != nil {
			return nil, caller
		}
		return nil, &Error{Code: Unreadable, Cause: err}
	}
	allowed, err := t.daemon.decide(request.Context(), replyOf(request, response, body))
	if err != nil {
		return nil, err
	}
	t.waiting.add(allowed)
	response.Body = io.NopCloser(strings.NewReader(string(body)))
	return response, nil
}

// pay sends a request with a payment. It needs a pending decision, which it uses up.
func (t *Transport) pay(request *http.Request, payment string) (*http.Response, error) {
	refusal := &Error{Code: NoDecision}
	questions := 0
	for _, allowed := range t.waiting.of(urlOf(request)) {
		for _, entry := range allowed.entries {
			if !t.waiting.now().Before(entry.until) {
				continue
			}
			if questions++; questions > maxQuestions {
				return nil, refusal
			}
			decision, err := t.daemon.signed(request.Context(), allowed.reply, payment, entry.index)
			if err != nil {
				return nil, err
			}
			if decision.abort {
				refusal = newError(PaymentDenied, decision.codes)
			} else if t.waiting.take(allowed, entry) {
				return afterPayment(t.leave(request, decision.document, payment))
			}
		}
	}
	return nil, refusal
}

// leave sends a payment and passes its documents to the program, even if no response arrives: the seller may have
// received the payment anyway.
func (t *Transport) leave(request *http.Request, decision json.RawMessage, payment string) (*http.Response, error) {
	response, err := t.inner.RoundTrip(request)
	paid := Paid{URL: urlOf(request), Decision: decision, Payment: payment}
	if err == nil {
		paid.Settlement = settlementOf(response.Header)
	}
	t.hand(paid)
	return response, err
}

// hand passes the documents to the program, whose panic must not lose a paid response.
func (t *Transport) hand(paid Paid) {
	if t.onPaid == nil {
		return
	}
	defer func() { _ = recover() }()
	t.onPaid(paid)
}

// settlementOf returns the header that describes the settlement. The values of a repeated header are joined.
func settlementOf(header http.Header) string {
	for _, name := range settlementHeaders {
		if values := header.Values(name); len(values) > 0 {
			return strings.Join(values, ", ")
		}
	}
	return ""
}

// paymentsIn returns the values of all payment headers. An [http.Header] can contain a name in any capitalization.
func paymentsIn(header http.Header) []string {
	var found []string
	for name, values := range header {
		if isOneOf(name, paymentHeaders) {
			found = append(found, values...)
		}
	}
	return found
}

// isRedirect reports whether clients follow responses with this status.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// afterPayment returns the response to a payment without the payment challenges of other protocols. It also removes the
// target of a redirect, because a client that follows it would pay again.
func afterPayment(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	clean(response)
	if isRedirect(response.StatusCode) {
		response.Header.Del("Location")
		response.Header.Del("Refresh")
	}
	return response, nil
}

// gzipMagic is the start of each gzip member.
const gzipMagic = "\x1f\x8b"

// bodyOf returns the body of a 402. A transport decodes one gzip coding while the body is read, and then removes
// Content-Encoding.
func bodyOf(response *http.Response) ([]byte, error) {
	if codings := strings.Join(response.Header.Values("Content-Encoding"), ","); strings.Contains(codings, ",") {
		return nil, errors.New("more than one content coding")
	}
	timer := time.AfterFunc(maxReadTime, func() { response.Body.Close() })
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReplyBytes+1))
	switch inTime := timer.Stop(); {
	case !inTime:
		return nil, context.DeadlineExceeded
	case err != nil:
		return nil, err
	case len(body) > maxReplyBytes:
		return nil, errors.New("too long")
	case response.Uncompressed && bytes.HasPrefix(body, []byte(gzipMagic)):
		return nil, errors.New("more than one content coding")
	}
	return body, nil
}

// urlOf returns the URL without the parts that are not sent.
func urlOf(request *http.Request) string {
	url := *request.URL
	url.Fragment, url.RawFragment, url.User = "", "", nil
	return url.String()
}

// isElsewhere reports whether another URL responded although redirects are disabled: response.Request is the last
// request that was sent.
func isElsewhere(request *http.Request, response *http.Response) bool {
	return response.Request != nil && urlOf(response.Request) != urlOf(request)
}

// reply is a seller's 402 response.
type reply struct {
	Status  int         `json:"status"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    string      `json:"body_base64"`

	// asked is the URL that was asked, or empty if the transport does not report the one that answered.
	asked string
}

func replyOf(request *http.Request, response *http.Response, body []byte) reply {
	headers := [][2]string{}
	for name, values := range response.Header {
		for _, value := range values {
			headers = append(headers, [2]string{name, value})
		}
	}
	asked := ""
	if response.Request != nil {
		asked = urlOf(request)
	}
	return reply{response.StatusCode, urlOf(request), headers, base64.StdEncoding.EncodeToString(body), asked}
}

// allowed is a 402 response with its allowed entries.
type allowed struct {
	reply   reply
	entries []entry
}

// isInTime reports whether one of the entries may still be paid.
func (a *allowed) isInTime(now time.Time) bool {
	for _, one := range a.entries {
		if now.Before(one.until) {
			return true
		}
	}
	return false
}

// waiting holds the pending decisions, the newest last.
type waiting struct {
	mutex sync.Mutex
	list  []*allowed
	now   func() time.Time
}

func (w *waiting) add(one *allowed) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.list = append(w.inTime(), one)
	if len(w.list) > maxWaiting {
		w.list = w.list[1:]
	}
}

// of returns the pending decisions for a URL, the newest first.
func (w *waiting) of(url string) []*allowed {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var found []*allowed
	for _, one := range w.inTime() {
		if one.reply.URL == url {
			found = append([]*allowed{one}, found...)
		}
	}
	return found
}

// take uses up a decision for an entry. It returns false if it was already used or has expired.
func (w *waiting) take(wanted *allowed, paid entry) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.now().Before(paid.until) {
		return false
	}
	var rest []*allowed
	isThere := false
	for _, one := range w.inTime() {
		if one == wanted {
			isThere = true
		} else {
			rest = append(rest, one)
		}
	}
	w.list = rest
	return isThere
}

func (w *waiting) inTime() []*allowed {
	var kept []*allowed
	now := w.now()
	for _, one := range w.list {
		if one.isInTime(now) {
			kept = append(kept, one)
		}
	}
	return kept
}
