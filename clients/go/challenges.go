package guard

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// One response can demand payment through x402 and through another protocol. The daemon judges only the x402 terms, so
// the payment client must never see the other demand.

const (
	// scheme matches an auth scheme that demands a payment.
	scheme = `(?:payment|l402|lsat)`

	// credentialMember is the member of an MCP request body in which the published clients send credentials.
	credentialMember = "org.paymentauth/credential"

	// maxChallengesBytes limits the challenge headers that are parsed. A longer one is removed if it mentions a scheme.
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

	// credentialHeaders are the headers in which the published clients send credentials.
	credentialHeaders = []string{"Authorization", "Proxy-Authorization", "Payment-Authorization"}

	isPayment = regexp.MustCompile(`(?i)^` + scheme + `$`)
	mention   = regexp.MustCompile(`(?i)` + scheme)

	// element matches one element of the list: the beginning of a challenge (whose scheme is captured), or a further
	// parameter.
	element = regexp.MustCompile(`^[ \t,]*((` + token + `)(?: +(?:` + param + `|` + token68 + `))?|` + param + `)[ \t]*(?:,|$)`)

	// lookalike matches text in which a client that searches for challenges would find one, even in a quoted string.
	lookalike = regexp.MustCompile(`(?i)` + scheme + `[^!-~]+(?:[!#-+\--<>-~]+[^!-~]*)?=`)

	// escape matches an escape in JSON: the code of an ASCII character, or an escaped character.
	escape = regexp.MustCompile(`\\(?:u00[0-9a-fA-F]{2}|(?s:.))`)

	// credential matches in the usual headers, and credentialElsewhere in any other header: a challenge can name the
	// header to use.
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
// stream, which is not inspected.
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
	return bytes.Contains(escape.ReplaceAllFunc(whole, unescaped), []byte(credentialMember)), err
}

// unescaped returns the ASCII character that an escape in JSON stands for.
func unescaped(escape []byte) []byte {
	if code, err := strconv.ParseUint(string(escape[2:]), 16, 8); err == nil && escape[1] == 'u' {
		return []byte{byte(code)}
	}
	return escape[1:]
}

// removeChallenges removes the payment challenges of other protocols from the headers of a response.
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

// isOneOf ignores case: a header map can contain a name in any spelling.
func isOneOf(name string, names []string) bool {
	for _, one := range names {
		if strings.EqualFold(name, one) {
			return true
		}
	}
	return false
}

// withoutPayments removes the payment challenges from a value. An ambiguous value that mentions a payment scheme is
// removed completely (the result is empty). A value without a payment challenge is returned unchanged.
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

// parsed returns the challenges of a value, and whether the value follows the grammar.
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
