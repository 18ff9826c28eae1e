package guard

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// A seller can demand a payment by x402 and by another protocol in one reply. The daemon judges the x402 terms alone, so a
// client must never see the other demand.

const (
	// scheme is an auth scheme that demands a payment.
	scheme = `(?:payment|l402|lsat)`

	// credentialMember is the member of a body over MCP in which the published clients send credentials.
	credentialMember = "org.paymentauth/credential"

	// maxChallengesBytes is the length of the longest value of a challenge header that is parsed. A longer one is removed
	// if it mentions a scheme.
	maxChallengesBytes = 16 * 1024

	// The grammar of RFC 9110, sections 11.2 and 11.3.
	tchar   = "!#$%&'*+\\-.^_`|~0-9A-Za-z"
	token   = `[` + tchar + `]+`
	quoted  = `"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*"`
	param   = token + `[ \t]*=[ \t]*(?:` + token + `|` + quoted + `)`
	token68 = `[0-9A-Za-z\-._~+/]+=*`
)

var (
	// challengeHeaders carry challenges.
	challengeHeaders = []string{"Www-Authenticate", "Proxy-Authenticate"}

	// credentialHeaders are those in which the published clients send credentials.
	credentialHeaders = []string{"Authorization", "Proxy-Authorization", "Payment-Authorization"}

	isPayment = regexp.MustCompile(`(?i)^` + scheme + `$`)
	mention   = regexp.MustCompile(`(?i)` + scheme)

	// element is one of the list: the beginning of a challenge (its scheme is captured), or a further parameter of it.
	element = regexp.MustCompile(`^[ \t,]*((` + token + `)(?: +(?:` + param + `|` + token68 + `))?|` + param + `)[ \t]*(?:,|$)`)

	// lookalike is text that a client which searches for a challenge takes for one, also within a quoted string.
	lookalike = regexp.MustCompile(`(?i)` + scheme + `[^!-~]+(?:[!#-+\--<>-~]+[^!-~]*)?=`)

	// credential is one where it belongs, credentialElsewhere one in any other header: a seller can name the header in its
	// challenge.
	credential          = regexp.MustCompile(`(?i)(?:^|,)[^!-~]*` + scheme + `(?:[^` + tchar + `]|$)`)
	credentialElsewhere = regexp.MustCompile(`(?i)(?:^|,)[^!-~]*` + scheme + `[^!-~]+[!-~]{32}`)
)

// carriesCredentials reports whether a request carries a credential of another payment protocol.
func carriesCredentials(header http.Header) bool {
	for name, values := range header {
		for _, value := range values {
			if isCredential(name, value) {
				return true
			}
		}
	}
	return false
}

func isCredential(name, value string) bool {
	if isOneOf(name, credentialHeaders) {
		return credential.MatchString(value)
	}
	return credentialElsewhere.MatchString(value)
}

// bodyCarriesCredential reports whether the body of a request carries such a credential. A body without GetBody is a
// stream, which is not read ahead.
func bodyCarriesCredential(request *http.Request) (bool, error) {
	if request.GetBody == nil {
		return false, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return false, err
	}
	defer body.Close()
	whole, err := io.ReadAll(body)
	return bytes.Contains(whole, []byte(credentialMember)), err
}

// removeChallenges removes the payment challenges of other protocols from the headers of a reply.
func removeChallenges(header http.Header) {
	for name, values := range header {
		if !isOneOf(name, challengeHeaders) {
			continue
		}
		var kept []string
		for _, value := range values {
			if rest := withoutPayments(value); rest != "" {
				kept = append(kept, rest)
			}
		}
		if header[name] = kept; len(kept) == 0 {
			delete(header, name)
		}
	}
}

// isOneOf compares without regard to case: a map of headers can hold a name in any spelling.
func isOneOf(name string, names []string) bool {
	for _, one := range names {
		if strings.EqualFold(name, one) {
			return true
		}
	}
	return false
}

// withoutPayments returns a value without its payment challenges. A value that is ambiguous and mentions such a scheme is
// removed whole (the result is empty); a value without such a challenge is returned unchanged.
func withoutPayments(value string) string {
	if !mention.MatchString(value) {
		return value
	}
	if len(value) > maxChallengesBytes {
		return ""
	}
	challenges, isParsed := parsed(value)
	if !isParsed {
		return ""
	}
	var others []string
	for _, one := range challenges {
		if !isPayment.MatchString(one.scheme) {
			others = append(others, value[one.start:one.end])
		}
	}
	kept := value
	if len(others) < len(challenges) {
		kept = strings.Join(others, ", ")
	}
	if lookalike.MatchString(kept) {
		return ""
	}
	return kept
}

type challenge struct {
	scheme     string
	start, end int
}

// parsed returns the challenges of a value, and whether it follows the grammar.
func parsed(value string) ([]challenge, bool) {
	var challenges []challenge
	for at := 0; strings.Trim(value[at:], " \t,") != ""; {
		found := element.FindStringSubmatchIndex(value[at:])
		switch {
		case found == nil:
			return nil, false
		case found[4] >= 0:
			scheme := value[at+found[4] : at+found[5]]
			challenges = append(challenges, challenge{scheme, at + found[2], at + found[3]})
		case len(challenges) > 0:
			challenges[len(challenges)-1].end = at + found[3]
		default:
			return nil, false
		}
		at += found[1]
	}
	return challenges, true
}
