package guard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// forAny is a configuration for any seller. The gate of its daemon answers nothing, unless another fault is given.
func forAny(fault string) Config {
	if fault == "" {
		fault = "gate.503"
	}
	config := configured(fault)
	config.Agent, config.Verb = "any", ""
	return config
}

func TestAnySellerWhosePayeeIsProvenIsPaidWithoutAGate(t *testing.T) {
	var kept []Paid
	one, config := newPurchase("honest"), forAny("")
	config.OnPaid = func(paid Paid) { kept = append(kept, paid) }
	guard := guarded(t, config)
	browse(t, guard, one.url+"#fragment")
	pay(t, guard, one.url, recorded("honest"))
	if paid := one.arrived().Payments; len(paid) != 1 || paid[0].To != world.Honest {
		t.Error(paid)
	}
	if len(kept) != 1 || !strings.Contains(string(kept[0].Decision), `"clresolve.check/1"`) {
		t.Error(kept)
	}
	asked := one.asked()
	first, second := asked[0], asked[1]
	reply := first["response"].(map[string]any)
	if len(first) != 2 || first["url"] != one.url || reply["url"] != one.url {
		t.Error(first)
	}
	first["selected"], first["header"] = 0.0, payments["honest"].Value
	if sorted(first) != sorted(second) {
		t.Errorf("%v is not %v", second, first)
	}
}

// silent does not report the request that was answered.
type silent struct{}

func (silent) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		response.Request = nil
	}
	return response, err
}

func TestTheURLThatWasAskedIsLeftOutIfNoOtherOneIsKnown(t *testing.T) {
	one := newPurchase("honest")
	guard, err := New(silent{}, forAny(""))
	must(err)
	browse(t, guard, one.url)
	if first := one.asked()[0]; len(first) != 1 || first["response"] == nil {
		t.Error(first)
	}
}

func TestNameVerbAndLimitsOfTheConfigurationGoAlong(t *testing.T) {
	about := func(fault string) Config {
		config := forAny(fault)
		config.Name, config.Verb = "seller.eth", "summarize"
		config.Limits = json.RawMessage(`{"max_amount":"10000"}`)
		return config
	}
	one := newPurchase("honest")
	browse(t, guarded(t, about("")), one.url)
	first := one.asked()[0]
	said := fmt.Sprint(first["name"], first["verb"], first["limits"])
	if said != fmt.Sprint("seller.eth", "summarize", map[string]any{"max_amount": "10000"}) {
		t.Error(said)
	}
	for _, fault := range []string{"decisions.other-name", "decisions.other-verb"} {
		refusesBrowsing(t, guarded(t, about(fault)), newPurchase("honest").url, Unavailable)
	}
}

func TestTermsThatACheckDoesNotAllowAreNotHandedOn(t *testing.T) {
	for _, test := range []struct{ which, fault, code string }{
		{"other-payto", "", "payee-mismatch"},
		{"over-limit", "", "payment-amount-exceeds"},
		{"honest", "decisions.claimed", "identity-claimed"},
	} {
		one, guard := newPurchase(test.which), guarded(t, forAny(test.fault))
		refusesBrowsing(t, guard, one.url, Denied, test.code)
		refusesPaying(t, guard, one.url, recorded("honest"), NoDecision)
		one.assertPayments(t, 0)
	}
}

func TestACheckIsForThePaymentThatWasAllowedAndForOne(t *testing.T) {
	one, guard := newPurchase("honest"), guarded(t, forAny(""))
	browse(t, guard, one.url)
	refusesPaying(t, guard, one.url, recorded("other-payto"), PaymentDenied, "payment-signature-mismatch")
	pay(t, guard, one.url, recorded("honest"))
	refusesPaying(t, guard, one.url, recorded("honest"), NoDecision)
	one.assertPayments(t, 1)
}

func TestATransientDenialOfACheckIsRetried(t *testing.T) {
	browse(t, guarded(t, forAny("decisions.unconfirmed-any")), newPurchase("honest").url)
}

func TestAnAnswerThatIsNoValidCheckAllowsNothing(t *testing.T) {
	for _, fault := range strings.Fields("other-schema schema 404 garbage undecided expired") {
		one := newPurchase("honest")
		refusesBrowsing(t, guarded(t, forAny("decisions."+fault)), one.url, Unavailable)
		guard := guarded(t, forAny("signed."+fault))
		browse(t, guard, one.url)
		refusesPaying(t, guard, one.url, recorded("honest"), Unavailable)
		one.assertPayments(t, 0)
	}
}

func TestAnySellerThatRedirectsIsRefused(t *testing.T) {
	one := newPurchase("redirect-307")
	refusesBrowsing(t, guarded(t, forAny("")), one.url, Redirected)
	if len(one.asked()) != 0 {
		t.Error(one.asked())
	}
}

func TestWhomTheGuardPaysMustBeSpeltOut(t *testing.T) {
	rejects := func(message string, config Config) {
		t.Helper()
		config.Daemon = world.Daemon
		if _, err := New(nil, config); err == nil || err.Error() != message {
			t.Errorf("%v: %v", config, err)
		}
	}
	for _, agent := range texts.MisspeltAny {
		rejects(`agent: did you mean "any"?`, Config{Agent: agent})
	}
	rejects(`agent: expected an ENS name, or "any"`, Config{Verb: "v"})
	rejects("verb must not be empty", Config{Agent: world.Name})
	rejects(`name: expected only with the agent "any"`, Config{Agent: world.Name, Verb: "v", Name: "seller.eth"})
	rejects(`signer: the daemon signs no answer for the agent "any"`, Config{Agent: "any", Signer: &Signer{}})
	meant := "name: expected the full ENS name in normal form; did you mean seller.eth?"
	for _, name := range []string{"Seller.eth", "seller"} {
		rejects(meant, Config{Agent: "any", Name: name})
	}
}
