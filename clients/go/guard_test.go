package guard

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// world is the world of ../testing: the stand-in daemon and the sellers.
var world struct {
	Agent, Thief, Daemon, Secure, Socket, CA, Issuer, Name, Verb, Honest, Stranger string
	JWKS                                                                           json.RawMessage
	Kept                                                                           map[string]string
}

// cases are the values that all four guards are tested with.
var cases struct {
	Challenges, Credentials, Others [][2]string
	Repeat                          struct {
		Text  string
		Times int
	}
	Bodies, OtherBodies []string
}

// texts are the messages and values that all four guards are tested with.
var texts struct {
	Unreachable, Failures map[string]string
	WithoutCause          []string
	Agents                [][2]string
	MisspeltAny           []string
	NormalAgents          []string
	DaemonsWithoutScheme  []string
}

// payments were made by the TypeScript clients, by the seller that they are for.
var payments map[string]struct{ Name, Value string }

func TestMain(m *testing.M) {
	node := os.Getenv("NODE")
	if node == "" {
		node = "node"
	}
	command := exec.Command(node, "../testing/world.mjs")
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	must(err)
	stdout, err := command.StdoutPipe()
	must(err)
	must(command.Start())
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	must(err)
	must(json.Unmarshal(line, &world))
	recorded, err := os.ReadFile("testdata/payments.json")
	must(err)
	must(json.Unmarshal(recorded, &payments))
	values, err := os.ReadFile("../testing/challenges.json")
	must(err)
	must(json.Unmarshal(values, &cases))
	values, err = os.ReadFile("../testing/messages.json")
	must(err)
	must(json.Unmarshal(values, &texts))
	code := m.Run()
	stdin.Close()
	command.Wait()
	os.Exit(code)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// purchase is one of its own: its URL, and what arrived.
type purchase struct{ url, id string }

func newPurchase(which string) purchase {
	id := fmt.Sprintf("go-%d", rand.Int63())
	return purchase{fmt.Sprintf("%s/agent/%s?id=%s", world.Agent, which, id), id}
}

type ledger struct {
	Requests int
	Payments []struct{ Seller, Header, To, Value string }
}

// arrived is what reached the sellers.
func (p purchase) arrived() (total ledger) {
	for _, seller := range []string{world.Agent, world.Thief} {
		var one ledger
		read(seller+"/~ledger?id="+p.id, &one)
		total.Requests += one.Requests
		total.Payments = append(total.Payments, one.Payments...)
	}
	return total
}

// asked are the questions about it.
func (p purchase) asked() (questions []map[string]any) {
	read(world.Daemon+"/~asked?id="+p.id, &questions)
	return questions
}

func (p purchase) assertPayments(t *testing.T, wanted int) {
	t.Helper()
	if arrived := p.arrived(); len(arrived.Payments) != wanted {
		t.Errorf("%d payments arrived, not %d: %v", len(arrived.Payments), wanted, arrived)
	}
}

func read(url string, into any) {
	response, err := http.Get(url)
	must(err)
	defer response.Body.Close()
	must(json.NewDecoder(response.Body).Decode(into))
}

// configured is a configuration; fault is one of the stand-in's, such as signed.503.
func configured(fault string) Config {
	daemon := world.Daemon
	if fault != "" {
		daemon += "/" + fault
	}
	return Config{Daemon: daemon, Agent: world.Name, Verb: world.Verb, Timeout: 2 * time.Second}
}

func guarded(t *testing.T, config Config) *Transport {
	t.Helper()
	transport, err := New(nil, config)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// get sends a request with these headers, and reads its reply whole.
func get(guard *Transport, url string, header http.Header) (int, string, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	must(err)
	if header != nil {
		request.Header = header
	}
	response, err := guard.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// recorded is the payment header that the TypeScript client made for a seller.
func recorded(which string) http.Header {
	return http.Header{payments[which].Name: {payments[which].Value}}
}

func refuses(t *testing.T, err error, code Code, codes ...string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("%v is no refusal", err)
	}
	if refusal.Code != code || strings.Join(refusal.Codes, " ") != strings.Join(codes, " ") {
		t.Errorf("%s %v, not %s %v", refusal.Code, refusal.Codes, code, codes)
	}
}

func refusesBrowsing(t *testing.T, guard *Transport, url string, code Code, codes ...string) {
	t.Helper()
	_, _, err := get(guard, url, nil)
	refuses(t, err, code, codes...)
}

func refusesPaying(t *testing.T, guard *Transport, url string, header http.Header, code Code, codes ...string) {
	t.Helper()
	_, _, err := get(guard, url, header)
	refuses(t, err, code, codes...)
}

func browse(t *testing.T, guard *Transport, url string) string {
	t.Helper()
	status, body, err := get(guard, url, nil)
	if err != nil || status != http.StatusPaymentRequired {
		t.Fatalf("%d, %v", status, err)
	}
	return body
}

func pay(t *testing.T, guard *Transport, url string, header http.Header) {
	t.Helper()
	if status, _, err := get(guard, url, header); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
}

func TestPaymentsOfTheTypeScriptClientsGoThrough(t *testing.T) {
	for _, which := range []string{"honest", "v1-honest"} {
		one, guard := newPurchase(which), guarded(t, configured(""))
		response, err := http.Get(one.url)
		must(err)
		plain, _ := io.ReadAll(response.Body)
		if body := browse(t, guard, one.url); body != string(plain) {
			t.Errorf("%q is not %q", body, plain)
		}
		pay(t, guard, one.url, recorded(which))
		if paid := one.arrived().Payments; len(paid) != 1 || paid[0].To != world.Honest {
			t.Errorf("%v", paid)
		}
	}
}

func TestOfAPaymentThatLeftIsHandedOutWhatIsToBeKept(t *testing.T) {
	for _, test := range []struct {
		which, payment, header string
		index                  int
	}{
		{"two-entries", "two-entries", "Payment-Response", 1},
		{"v1-honest", "v1-honest", "X-Payment-Response", 0},
		{"asks-again", "honest", "", 0},
	} {
		var kept []Paid
		one, config := newPurchase(test.which), configured("")
		config.OnPaid = func(paid Paid) {
			kept = append(kept, paid)
			panic("the program's own")
		}
		guard := guarded(t, config)
		browse(t, guard, one.url)
		if len(kept) != 0 {
			t.Errorf("%s: nothing has left: %v", test.which, kept)
		}
		request, err := http.NewRequest(http.MethodGet, one.url, nil)
		must(err)
		request.Header = recorded(test.payment)
		response, err := guard.RoundTrip(request)
		if err != nil || len(kept) != 1 {
			t.Fatalf("%s: %v, %v", test.which, err, kept)
		}
		response.Body.Close()
		settlement := ""
		if test.header != "" {
			settlement = response.Header[test.header][0]
		}
		paid := kept[0]
		if paid.URL != one.url || paid.Payment != payments[test.payment].Value || paid.Settlement != settlement {
			t.Errorf("%s: %v", test.which, paid)
		}
		// That about what was signed, not the one before it.
		decision, err := readDecision(paid.Decision, decisions.schema, world.Name, world.Verb)
		if err != nil || len(decision.passing) != 1 || decision.passing[0].index != test.index {
			t.Errorf("%s: %v, %s", test.which, err, paid.Decision)
		}
	}
}

func TestOfAPaymentWithoutAReplyItIsHandedOutTooAndOfOneThatDoesNotLeaveNothing(t *testing.T) {
	var kept []Paid
	one, config := newPurchase("breaks-off"), configured("")
	config.OnPaid = func(paid Paid) { kept = append(kept, paid) }
	guard := guarded(t, config)
	refusesPaying(t, guard, one.url, recorded("honest"), NoDecision)
	browse(t, guard, one.url)
	refusesPaying(t, guard, one.url, recorded("other-payto"), PaymentDenied, "payment-signature-mismatch")
	if len(kept) != 0 {
		t.Error(kept)
	}
	if _, _, err := get(guard, one.url, recorded("honest")); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if len(kept) != 1 || kept[0].Payment != payments["honest"].Value || kept[0].Settlement != "" {
		t.Error(kept)
	}
}

func TestPaymentsOfTheTypeScriptClientsForTheThiefDoNotLeave(t *testing.T) {
	for which, header := range map[string]string{"honest": "other-payto", "v1-honest": "v1-other-payto"} {
		one, guard := newPurchase(which), guarded(t, configured(""))
		browse(t, guard, one.url)
		refusesPaying(t, guard, one.url, recorded(header), PaymentDenied, "payment-signature-mismatch")
		one.assertPayments(t, 0)
	}
}

func TestNothingLeavesThatTheGateDoesNotAllow(t *testing.T) {
	one, config := newPurchase("free"), configured("")
	config.Agent = "stranger.eth"
	refusesBrowsing(t, guarded(t, config), one.url, Denied, "name-unregistered")
	for _, fault := range []string{"500", "503", "204", "302", "hangs", "drops", "oversize"} {
		config := configured("gate." + fault)
		config.Timeout = 200 * time.Millisecond
		refusesBrowsing(t, guarded(t, config), one.url, Unavailable)
	}
	if arrived := one.arrived(); arrived.Requests != 0 {
		t.Errorf("%v", arrived)
	}
}

func TestRefusalNamesTheDaemonAndItsFailureAndHasACause(t *testing.T) {
	refusesWith := func(daemon, what string, timeout time.Duration) error {
		t.Helper()
		config := configured("")
		config.Daemon, config.Timeout = daemon, timeout
		_, _, err := get(guarded(t, config), newPurchase("honest").url, nil)
		refuses(t, err, Unavailable)
		if text := "not paying: no usable answer from clresolve at " + daemon + ": " + what; err.Error() != text {
			t.Errorf("%q, not %q", err, text)
		}
		return errors.Unwrap(err)
	}
	for daemon, what := range texts.Unreachable {
		cause := refusesWith(daemon, what, 2*time.Second)
		if !errors.Is(cause, syscall.ECONNREFUSED) && !errors.Is(cause, fs.ErrNotExist) {
			t.Errorf("%s: %v", daemon, cause)
		}
	}
	for fault, what := range texts.Failures {
		cause := refusesWith(world.Daemon+"/"+fault, what, 200*time.Millisecond)
		if hasCause := !isOneOf(fault, texts.WithoutCause); hasCause != (cause != nil) {
			t.Errorf("%s: %v", fault, cause)
		}
		if what == "timeout" && !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("%s: %v", fault, cause)
		}
	}
	impatient := world.Daemon + "/gate.cold-late"
	if cause := refusesWith(impatient, "timeout", 50*time.Millisecond); !errors.Is(cause, context.DeadlineExceeded) {
		t.Error(cause)
	}
}

func TestAgentThatIsNotInNormalFormIsRejectedWithTheNameThatWasMeant(t *testing.T) {
	config := configured("")
	for _, one := range texts.Agents {
		config.Agent = one[0]
		text := "agent: expected the full ENS name in normal form; did you mean " + one[1] + "?"
		if _, err := New(nil, config); err == nil || err.Error() != text {
			t.Errorf("%q: %v", one[0], err)
		}
	}
	for _, config.Agent = range texts.NormalAgents {
		guarded(t, config)
	}
}

func TestDaemonWithoutASchemeIsRejectedWithAnExample(t *testing.T) {
	config := configured("")
	for _, config.Daemon = range texts.DaemonsWithoutScheme {
		_, err := New(nil, config)
		if err == nil || err.Error() != "daemon: expected a URL such as http://127.0.0.1:8402" {
			t.Errorf("%q: %v", config.Daemon, err)
		}
	}
}

func TestATransientDenialIsRetriedUntilTheTimeout(t *testing.T) {
	for _, fault := range []string{"gate.cold", "gate.unconfirmed", "decisions.unconfirmed", "signed.unconfirmed"} {
		t.Run(fault, func(t *testing.T) {
			one, guard := newPurchase("honest"), guarded(t, configured(fault))
			browse(t, guard, one.url)
			pay(t, guard, one.url, recorded("honest"))
		})
	}
	for _, fault := range []string{"gate.cold", "gate.unconfirmed", "decisions.unconfirmed"} {
		t.Run(fault+"-impatient", func(t *testing.T) {
			config := configured(fault + "-impatient")
			config.Timeout = 50 * time.Millisecond
			refusesBrowsing(t, guarded(t, config), newPurchase("honest").url, Unavailable)
		})
	}
}

func TestForeignTextDoesNotGetIntoAMessage(t *testing.T) {
	_, _, err := get(guarded(t, configured("gate.foreign")), newPurchase("free").url, nil)
	if err.Error() != "not paying: clresolve denies this agent or its terms" {
		t.Error(err)
	}
}

func TestACallerThatGivesUpGetsItsOwnReason(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, newPurchase("free").url, nil)
	must(err)
	if _, err := guarded(t, configured("")).RoundTrip(request); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		one := newPurchase(fmt.Sprintf("redirect-%d", status))
		client := &http.Client{Transport: guarded(t, configured(""))}
		_, err := client.Get(one.url)
		refuses(t, err, Redirected)
		if one.arrived().Requests != 1 || len(one.asked()) != 0 {
			t.Errorf("%v, %v", one.arrived(), one.asked())
		}
	}
}

// following sends requests with a client that follows redirects.
type following struct{}

func (following) RoundTrip(request *http.Request) (*http.Response, error) {
	again := request.Clone(request.Context())
	again.RequestURI = ""
	return (&http.Client{}).Do(again)
}

func TestATransportThatFollowsRedirectsAllTheSameIsFoundOut(t *testing.T) {
	one := newPurchase("redirect-307")
	guard, err := New(following{}, configured(""))
	must(err)
	refusesBrowsing(t, guard, one.url, Redirected)
	if len(one.asked()) != 0 {
		t.Error(one.asked())
	}
}

// paying answers a 402 with a payment, as the clients of TypeScript do.
type paying struct{ below http.RoundTripper }

func (p paying) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.below.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusPaymentRequired {
		return response, err
	}
	response.Body.Close()
	again := request.Clone(request.Context())
	if request.GetBody != nil {
		again.Body, err = request.GetBody()
		must(err)
	}
	again.Header.Set(payments["honest"].Name, payments["honest"].Value)
	return p.below.RoundTrip(again)
}

func TestTheRedirectOfAPaidRequestComesBackAndIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, where := range []string{"itself", "elsewhere"} {
			one := newPurchase(fmt.Sprintf("paid-%d-%s", status, where))
			client := &http.Client{Transport: paying{guarded(t, configured(""))}}
			answer, err := client.Post(one.url, "text/plain", strings.NewReader("secret"))
			if err != nil {
				t.Errorf("%s, %d: %v", where, status, err)
				continue
			}
			body, _ := io.ReadAll(answer.Body)
			header := answer.Header
			leads := header.Get("Location") + header.Get("Refresh")
			if answer.StatusCode != status || string(body) != `{"moved":true}` || leads != "" {
				t.Errorf("%s, %d: %d %s %v", where, status, answer.StatusCode, body, header)
			}
			if arrived := one.arrived(); header.Get("Payment-Response") == "" || arrived.Requests != 2 {
				t.Errorf("%s, %d: %v", where, status, arrived)
			}
			one.assertPayments(t, 1)
		}
	}
}

func TestTheExamplePrintsThe402OfTheAgentAndRefusesTheThiefs(t *testing.T) {
	source, err := os.ReadFile("examples/buy/main.go")
	must(err)
	folder := t.TempDir()
	file, program := filepath.Join(folder, "main.go"), filepath.Join(folder, "buy")
	text := strings.Replace(string(source), "http://127.0.0.1:8402", world.Daemon, 1)
	must(os.WriteFile(file, []byte(text), 0o600))
	if said, err := exec.Command("go", "build", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	said, err := exec.Command(program, newPurchase("honest").url).Output()
	if err != nil || string(said) != "402 Payment Required\n" {
		t.Errorf("%s, %v", said, err)
	}
	said, err = exec.Command(program, newPurchase("other-payto").url).CombinedOutput()
	if err == nil || !strings.HasSuffix(string(said), "denied [payee-mismatch]\n") {
		t.Errorf("%s, %v", said, err)
	}
}

func TestTermsWithoutAnEntryThatPassesAreNotHandedOn(t *testing.T) {
	for which, code := range map[string]string{
		"other-payto":         "payee-mismatch",
		"ten-years":           "payment-timeout-excessive",
		"fake-usdc":           "payment-asset-unlisted",
		"wrong-chain":         "payment-network-mismatch",
		"over-limit":          "payment-amount-exceeds",
		"header-against-body": "payment-terms-ambiguous",
		"broken-header":       "payment-terms-malformed",
		"two-headers":         "payment-terms-ambiguous",
		"garbage":             "payment-terms-malformed",
		"v1-other-payto":      "payee-mismatch",
	} {
		one, guard := newPurchase(which), guarded(t, configured(""))
		refusesBrowsing(t, guard, one.url, Denied, code)
		refusesPaying(t, guard, one.url, recorded("honest"), NoDecision)
		one.assertPayments(t, 0)
	}
}

const broken = "500 503 404 422 201 302 hangs drips drops garbage truncated oversize schema other-schema no-schema " +
	"no-codes codes-number other-name other-verb no-abort abort-text abort-number undecided unknown expired endless " +
	"date offset no-time list null"

func TestTermsAreNotHandedOnWithoutADecision(t *testing.T) {
	const entries = " no-entries entry-text entry-bare entry-index entry-twice entries-many entry-endless entry-null " +
		"entry-date entry-over"
	for _, fault := range strings.Fields(broken + entries) {
		fault := fault
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			one, config := newPurchase("honest"), configured("decisions."+fault)
			config.Timeout = 500 * time.Millisecond
			guard := guarded(t, config)
			refusesBrowsing(t, guard, one.url, Unavailable)
			refusesPaying(t, guard, one.url, recorded("honest"), NoDecision)
			one.assertPayments(t, 0)
		})
	}
}

func TestAPaymentDoesNotLeaveWithoutADecisionAboutWhatIsSigned(t *testing.T) {
	for _, fault := range strings.Fields(broken + " entry-other allows-nothing") {
		fault := fault
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			one, config := newPurchase("honest"), configured("signed."+fault)
			config.Timeout = 500 * time.Millisecond
			guard := guarded(t, config)
			browse(t, guard, one.url)
			refusesPaying(t, guard, one.url, recorded("honest"), Unavailable)
			one.assertPayments(t, 0)
		})
	}
	one, guard := newPurchase("honest"), guarded(t, configured("signed.aborts"))
	browse(t, guard, one.url)
	refusesPaying(t, guard, one.url, recorded("honest"), PaymentDenied)
	one.assertPayments(t, 0)
}

func TestAnAllowanceWithoutAnEntryAllowsNothing(t *testing.T) {
	refusesBrowsing(t, guarded(t, configured("decisions.allows-nothing")), newPurchase("honest").url, Denied)
}

func TestRefusalHasTheCodesThatDecide(t *testing.T) {
	warns := guarded(t, configured("decisions.warns"))
	refusesBrowsing(t, warns, newPurchase("other-payto").url, Denied, "payee-mismatch")
	denies := guarded(t, configured("decisions.denies-a-warning"))
	refusesBrowsing(t, denies, newPurchase("honest").url, Denied, "payee-changed")
	one, guard := newPurchase("honest"), guarded(t, configured("signed.warns"))
	browse(t, guard, one.url)
	refusesPaying(t, guard, one.url, recorded("other-payto"), PaymentDenied, "payment-signature-mismatch")
	// A warning denies nothing.
	pay(t, guard, one.url, recorded("honest"))
}

func TestTheLongest402IsReadAndALongerOneIsNotPaid(t *testing.T) {
	if body := browse(t, guarded(t, configured("")), newPurchase("longest-body").url); len(body) != maxReplyBytes {
		t.Errorf("%d bytes", len(body))
	}
	longer := newPurchase("longer-body")
	refusesBrowsing(t, guarded(t, configured("")), longer.url, Unreadable)
	if len(longer.asked()) != 0 {
		t.Error(longer.asked())
	}
}

func TestA402ThatBreaksOffIsRefusedWithItsLocalCause(t *testing.T) {
	for _, which := range []string{"cut-off", "cut-off-chunked"} {
		one := newPurchase(which)
		_, _, err := get(guarded(t, configured("")), one.url, nil)
		refuses(t, err, Unreadable)
		if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "accepts") || len(one.asked()) != 0 {
			t.Errorf("%s: %v, %v", which, err, one.asked())
		}
	}
}

func TestA402ThatDripsIsRefusedInTimeWithItsLocalCause(t *testing.T) {
	one, began := newPurchase("drips"), time.Now()
	_, _, err := get(guarded(t, configured("")), one.url, nil)
	refuses(t, err, Unreadable)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 15*time.Second || len(one.asked()) != 0 {
		t.Error(err, time.Since(began), one.asked())
	}
}

func TestACallerThatGivesUpOnA402GetsItsOwnReason(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, newPurchase("honest").url, nil)
	must(err)
	guard, err := New(stalling(cancel), configured(""))
	must(err)
	if _, err := guard.RoundTrip(request); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// stalling answers with a 402 whose caller gives up while its body is read.
type stalling func()

func (s stalling) RoundTrip(request *http.Request) (*http.Response, error) {
	body, writer := io.Pipe()
	go func() {
		s()
		writer.CloseWithError(io.ErrUnexpectedEOF)
	}()
	return &http.Response{StatusCode: http.StatusPaymentRequired, Header: http.Header{}, Body: body, Request: request}, nil
}

func TestABodyWithTwoCodingsOrBeyondTheLimitIsRefused(t *testing.T) {
	for _, which := range []string{"gzip-twice", "gzip-on-two-lines", "gzip-bomb"} {
		one := newPurchase(which)
		refusesBrowsing(t, guarded(t, configured("")), one.url, Unreadable)
		if len(one.asked()) != 0 {
			t.Error(which, one.asked())
		}
	}
	// A transport that leaves the coding alone shows both lines.
	raw, err := New(&http.Transport{DisableCompression: true}, configured(""))
	must(err)
	refusesBrowsing(t, raw, newPurchase("gzip-on-two-lines").url, Unreadable)
}

func TestABodyWithOneCodingIsJudgedAsTheClientReadsIt(t *testing.T) {
	one := newPurchase("gzip")
	if body := browse(t, guarded(t, configured("")), one.url); body != "{}" {
		t.Error(body)
	}
	if sent := one.asked()[0]["response"].(map[string]any)["body_base64"]; sent != "e30=" {
		t.Error(sent)
	}
}

// latin1 has a byte for each character, as all of HTTP's headers do.
func latin1(text string) string {
	var all []byte
	for _, one := range strings.ReplaceAll(text, "#", strings.Repeat(cases.Repeat.Text, cases.Repeat.Times)) {
		all = append(all, byte(one))
	}
	return string(all)
}

func TestPaymentChallengesAreRemovedAndOthersStay(t *testing.T) {
	for _, one := range cases.Challenges {
		if kept := withoutPayments(latin1(one[0])); kept != latin1(one[1]) {
			t.Errorf("%q leaves %q", one[0], kept)
		}
	}
}

// assertKept compares the challenges of a reply with those that a guard hands on.
func assertKept(t *testing.T, header http.Header) {
	t.Helper()
	for name, kept := range world.Kept {
		if values := header.Values(name); len(values) != 1 || values[0] != kept {
			t.Errorf("%s: %q", name, values)
		}
	}
}

func handedOn(t *testing.T, guard *Transport, url string, header http.Header, status int) http.Header {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	must(err)
	if header != nil {
		request.Header = header
	}
	response, err := guard.RoundTrip(request)
	if err != nil || response.StatusCode != status {
		t.Fatalf("%v, %v", response, err)
	}
	response.Body.Close()
	return response.Header
}

func TestClientAndDaemonSeeNoChallengeOfAnotherProtocol(t *testing.T) {
	one := newPurchase("other-protocols")
	assertKept(t, handedOn(t, guarded(t, configured("")), one.url, nil, 402))
	seen := http.Header{}
	for _, pair := range one.asked()[0]["response"].(map[string]any)["headers"].([]any) {
		seen.Add(pair.([]any)[0].(string), pair.([]any)[1].(string))
	}
	assertKept(t, seen)
}

func TestRepliesCarryNoChallengeOfAnotherPaymentProtocol(t *testing.T) {
	for _, status := range []int{200, 204, 401, 403, 503} {
		url := newPurchase(fmt.Sprintf("status-%d", status)).url
		header := handedOn(t, guarded(t, configured("")), url, nil, status)
		assertKept(t, header)
		if header.Get("Payment-Required")+header.Get("X-Payment-Required") != "" {
			t.Errorf("%d: terms are left", status)
		}
	}
	one, guard := newPurchase("asks-otherwise"), guarded(t, configured(""))
	browse(t, guard, one.url)
	assertKept(t, handedOn(t, guard, one.url, recorded("honest"), 402))
	lower := http.Header{"www-authenticate": {"Payment id=c1", "Bearer"}}
	if removeChallenges(lower); fmt.Sprint(lower) != "map[www-authenticate:[Bearer]]" {
		t.Error(lower)
	}
}

func TestA402WithAnotherProtocolsDemandAloneIsRefused(t *testing.T) {
	for _, which := range []string{"mpp-thief", "mpp-honest"} {
		refusesBrowsing(t, guarded(t, configured("")), newPurchase(which).url, Denied, "payment-terms-malformed")
	}
}

func TestACredentialOfAnotherPaymentProtocolDoesNotLeave(t *testing.T) {
	one, guard := newPurchase("honest"), guarded(t, configured(""))
	browse(t, guard, one.url)
	for _, credential := range cases.Credentials {
		refusesPaying(t, guard, one.url, http.Header{credential[0]: {credential[1]}}, OtherProtocol)
		both := recorded("honest")
		both[credential[0]] = []string{"other", credential[1]}
		refusesPaying(t, guard, one.url, both, OtherProtocol)
	}
	if arrived := one.arrived(); arrived.Requests != 1 {
		t.Error(arrived)
	}
	for _, other := range cases.Others {
		if _, _, err := get(guard, one.url, http.Header{other[0]: {other[1]}}); err != nil {
			t.Errorf("%q: %v", other, err)
		}
	}
}

func TestACredentialOfAnotherPaymentProtocolInABodyDoesNotLeave(t *testing.T) {
	one, guard := newPurchase("honest"), guarded(t, configured(""))
	browse(t, guard, one.url)
	post := func(header http.Header, body string) (*http.Response, error) {
		request, err := http.NewRequest(http.MethodPost, one.url, strings.NewReader(body))
		must(err)
		request.Header = header
		return guard.RoundTrip(request)
	}
	for _, header := range []http.Header{{}, recorded("honest")} {
		for _, body := range cases.Bodies {
			_, err := post(header, body)
			refuses(t, err, OtherProtocol)
		}
	}
	if arrived := one.arrived(); arrived.Requests != 1 {
		t.Error(arrived)
	}
	for _, body := range cases.OtherBodies {
		if _, err := post(http.Header{}, body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestTheDaemonSeesTheURLEveryHeaderAndTheWholeBody(t *testing.T) {
	one, config := newPurchase("v1-honest"), configured("")
	config.Limits = json.RawMessage(`{"networks":["eip155:84532"]}`)
	guard := guarded(t, config)
	body := browse(t, guard, one.url+"#fragment")
	pay(t, guard, one.url, recorded("v1-honest"))
	asked := one.asked()
	first, second := asked[0], asked[1]
	reply := first["response"].(map[string]any)
	sent, _ := base64.StdEncoding.DecodeString(reply["body_base64"].(string))
	if first["name"] != world.Name || first["verb"] != world.Verb || reply["url"] != one.url || string(sent) != body {
		t.Error(first)
	}
	if fmt.Sprint(first["limits"]) != "map[networks:[eip155:84532]]" || reply["status"] != 402.0 {
		t.Error(first)
	}
	if !strings.Contains(fmt.Sprint(reply["headers"]), "[Content-Type application/json]") {
		t.Error(reply["headers"])
	}
	first["selected"], first["header"] = 0.0, payments["v1-honest"].Value
	if sorted(first) != sorted(second) {
		t.Errorf("%v is not %v", second, first)
	}
}

// sorted is a question as text, its members in order.
func sorted(question map[string]any) string {
	text, err := json.Marshal(question)
	must(err)
	return string(text)
}

func TestHeadersThatComeTwiceAreHandedToTheDaemonTwice(t *testing.T) {
	one := newPurchase("two-headers")
	refusesBrowsing(t, guarded(t, configured("")), one.url, Denied, "payment-terms-ambiguous")
	headers := fmt.Sprint(one.asked()[0]["response"].(map[string]any)["headers"])
	if strings.Count(headers, "Payment-Required") != 2 {
		t.Error(headers)
	}
}

func TestAPaymentHeaderInAnySpellingDoesNotLeaveWithoutADecision(t *testing.T) {
	one := newPurchase("honest")
	for _, name := range []string{"PAYMENT-SIGNATURE", "Payment-Signature", "payment-signature", "x-PAYMENT"} {
		for _, value := range []string{payments["honest"].Value, ""} {
			refusesPaying(t, guarded(t, configured("")), one.url, http.Header{name: {value}}, NoDecision)
		}
	}
	if one.arrived().Requests != 0 {
		t.Error(one.arrived())
	}
}

func TestTwoPaymentsInOneRequestDoNotLeave(t *testing.T) {
	one, guard, value := newPurchase("honest"), guarded(t, configured("")), payments["honest"].Value
	browse(t, guard, one.url)
	for _, header := range []http.Header{
		{"Payment-Signature": {value}, "X-Payment": {value}},
		{"Payment-Signature": {value, value}},
		{"Payment-Signature": {value}, "payment-signature": {value}},
	} {
		refusesPaying(t, guard, one.url, header, TwoPayments)
	}
	one.assertPayments(t, 0)
}

func TestADecisionIsForItsURL(t *testing.T) {
	one, other, guard := newPurchase("honest"), newPurchase("honest"), guarded(t, configured(""))
	browse(t, guard, one.url)
	refusesPaying(t, guard, other.url, recorded("honest"), NoDecision)
	other.assertPayments(t, 0)
}

func TestADecisionIsForOnePayment(t *testing.T) {
	for _, which := range []string{"honest", "asks-again"} {
		one, guard := newPurchase(which), guarded(t, configured(""))
		browse(t, guard, one.url)
		if _, _, err := get(guard, one.url, recorded("honest")); err != nil {
			t.Error(err)
		}
		refusesPaying(t, guard, one.url, recorded("honest"), NoDecision)
		one.assertPayments(t, 1)
	}
}

func TestOfPaymentsAtOnceExactlyOneLeavesForEachDecision(t *testing.T) {
	for decisions := 1; decisions <= 2; decisions++ {
		one, guard := newPurchase("honest"), guarded(t, configured(""))
		for count := 0; count < decisions; count++ {
			browse(t, guard, one.url)
		}
		var group sync.WaitGroup
		for count := 0; count < 8; count++ {
			group.Add(1)
			go func() {
				defer group.Done()
				get(guard, one.url, recorded("honest"))
			}()
		}
		group.Wait()
		one.assertPayments(t, decisions)
	}
}

func TestADecisionEnds(t *testing.T) {
	one, guard := newPurchase("honest"), guarded(t, configured(""))
	browse(t, guard, one.url)
	until := guard.waiting.of(one.url)[0].entries[0].until
	guard.waiting.now = func() time.Time { return until }
	refusesPaying(t, guard, one.url, recorded("honest"), NoDecision)
	one.assertPayments(t, 0)
}

func TestAnEntryEndsByItself(t *testing.T) {
	one, guard := newPurchase("two-entries"), guarded(t, configured(""))
	browse(t, guard, one.url)
	waiting := guard.waiting.of(one.url)[0]
	shorter := &waiting.entries[1]
	shorter.until = shorter.until.Add(-30 * time.Second)
	now := shorter.until
	guard.waiting.now = func() time.Time { return now }
	refusesPaying(t, guard, one.url, recorded("two-entries"), PaymentDenied, "payment-signature-mismatch")
	if guard.waiting.take(waiting, *shorter) || !guard.waiting.take(waiting, waiting.entries[0]) {
		t.Error("one entry is over, and the other is not")
	}
	one.assertPayments(t, 0)
}

func TestOfSeveralEntriesTheOneThatIsSignedCounts(t *testing.T) {
	one, guard := newPurchase("two-entries"), guarded(t, configured(""))
	browse(t, guard, one.url)
	pay(t, guard, one.url, recorded("two-entries"))
	if value := one.arrived().Payments[0].Value; value != "9000" {
		t.Error(value)
	}
	poisoned := newPurchase("second-poisoned")
	browse(t, guard, poisoned.url)
	refusesPaying(t, guard, poisoned.url, recorded("other-payto"), PaymentDenied, "payment-signature-mismatch")
	pay(t, guard, poisoned.url, recorded("honest"))
}

func TestAboutOnePaymentAtMost32QuestionsAreAsked(t *testing.T) {
	one, guard := newPurchase("honest"), guarded(t, configured(""))
	for count := 0; count < 33; count++ {
		browse(t, guard, one.url)
	}
	refusesPaying(t, guard, one.url, recorded("other-payto"), PaymentDenied, "payment-signature-mismatch")
	questions := 0
	for _, question := range one.asked() {
		if _, isSigned := question["header"]; isSigned {
			questions++
		}
	}
	if questions != 32 {
		t.Error(questions)
	}
}

func TestDecisionsThatNobodyPaysForAreForgottenTheOldestFirst(t *testing.T) {
	kept := waiting{now: time.Now}
	var all []*allowed
	paid := entry{until: time.Now().Add(time.Minute)}
	for count := 0; count <= maxWaiting; count++ {
		all = append(all, &allowed{entries: []entry{paid}})
		kept.add(all[count])
	}
	if kept.take(all[0], paid) || !kept.take(all[1], paid) || kept.take(all[1], paid) {
		t.Error("the oldest is forgotten, and the next is there once")
	}
}

func TestARefusedRequestIsClosed(t *testing.T) {
	config := configured("")
	config.Agent = "stranger.eth"
	body := &closing{Reader: strings.NewReader("")}
	request, err := http.NewRequest(http.MethodPost, newPurchase("free").url, body)
	must(err)
	guarded(t, config).RoundTrip(request)
	if !body.isClosed {
		t.Error("the body of a request that did not leave is still open")
	}
}

type closing struct {
	io.Reader
	isClosed bool
}

func (c *closing) Close() error {
	c.isClosed = true
	return nil
}

func TestADaemonElsewhereIsAskedOverHTTPSOrSigns(t *testing.T) {
	signer := &Signer{Issuer: world.Issuer}
	isRefused := func(daemon string, signer *Signer) bool {
		_, err := New(nil, Config{Daemon: daemon, Agent: world.Name, Verb: world.Verb, Signer: signer})
		return err != nil
	}
	for _, daemon := range strings.Fields("http://clresolve.example http://10.0.0.1:8402 http://127.0.0.1.example " +
		"http://localhost.example http://[::2] http://0.0.0.0 http://[::ffff:127.0.0.1] http://128.0.0.1 http://127.1") {
		if !isRefused(daemon, nil) || isRefused(daemon, signer) {
			t.Error(daemon)
		}
	}
	for _, daemon := range strings.Fields("http://127.0.0.1:8402 http://127.1.2.3 http://[::1]:8402/behind/a/proxy " +
		"http://LOCALHOST https://clresolve.example unix:/run/clresolve.sock") {
		if isRefused(daemon, nil) {
			t.Error(daemon)
		}
	}
	const bad = "ftp://127.0.0.1|http://user@127.0.0.1|http://127.0.0.1?a|127.0.0.1|" +
		"unix:relative|UNIX:/run/clresolve.sock| unix:/run/clresolve.sock"
	for _, daemon := range strings.Split(bad, "|") {
		if !isRefused(daemon, signer) {
			t.Error(daemon)
		}
	}
	for _, config := range []Config{{Agent: "a", Daemon: world.Daemon}, {Verb: "v", Daemon: world.Daemon}} {
		if _, err := New(nil, config); err == nil {
			t.Error(config)
		}
	}
}

func TestADaemonIsReachedOverHTTPSAndOverAUnixSocket(t *testing.T) {
	secure, local := configured(""), configured("")
	secure.Daemon, local.Daemon = world.Secure, "unix:"+world.Socket
	refusesBrowsing(t, guarded(t, secure), newPurchase("free").url, Unavailable)
	secure.RootCAs = x509.NewCertPool()
	secure.RootCAs.AppendCertsFromPEM([]byte(world.CA))
	for _, config := range []Config{secure, local} {
		one, guard := newPurchase("honest"), guarded(t, config)
		browse(t, guard, one.url)
		pay(t, guard, one.url, recorded("honest"))
		one.assertPayments(t, 1)
	}
}

func TestProxiesOfTheEnvironmentAreNotAsked(t *testing.T) {
	if guarded(t, configured("")).daemon.line.Proxy != nil {
		t.Error("the daemon is asked through a proxy")
	}
}

func TestASignedDecisionIsChecked(t *testing.T) {
	keys, err := ParseKeys(world.JWKS)
	must(err)
	signed := func(fault string) *Transport {
		config := configured(fault)
		config.Signer = &Signer{Issuer: world.Issuer, Keys: keys}
		return guarded(t, config)
	}
	one, guard := newPurchase("honest"), signed("")
	browse(t, guard, one.url)
	pay(t, guard, one.url, recorded("honest"))
	faults := "unsigned jws-issuer jws-late jws-early jws-long jws-request jws-unbound jws-none jws-type jws-crit " +
		"jws-jku jws-kid jws-key jws-payload jws-backward jws-fraction jws-text jws-padded jws-parts jws-space"
	for _, fault := range strings.Fields(faults) {
		refusesBrowsing(t, signed("decisions."+fault), one.url, Unavailable)
		then := signed("signed." + fault)
		browse(t, then, one.url)
		refusesPaying(t, then, one.url, recorded("honest"), Unavailable)
	}
	one.assertPayments(t, 1)
	for _, bad := range []string{"", "[]", `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"AA"}]}`} {
		if _, err := ParseKeys([]byte(bad)); err == nil {
			t.Error(bad)
		}
	}
}
