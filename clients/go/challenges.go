package guard

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// One response can demand payment through x402 and through another protocol. The daemon judges only the x402 terms, so
// the payment client must never see the other demand.

const (
	// scheme matches what an auth scheme that demands a payment contains: clients take Payments or L402x for one, too.
	scheme = `(?:payment|l402|lsat)`

	// invoice matches the parameter by which clients of Lightning find an invoice, whatever the scheme, and even inside a
	// quoted string.
	invoice = `(?:invoice|macaroon|(?:l402|lsat)[a-z]{0,10})[^!-~]*=`

	// maxChallengesBytes limits the challenge headers that are parsed. A longer one is removed if it mentions a payment.
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

	// termsHeaders are the headers in which clients find terms.
	termsHeaders = []string{"Payment-Required", "X-Payment-Required"}

	// credentialHeaders are the headers in which the published clients send credentials.
	credentialHeaders = []string{"Authorization", "Proxy-Authorization", "Payment-Authorization"}

	// credentialMember matches the member of an MCP request body in which the published clients send credentials.
	credentialMember = regexp.MustCompile(`org\.paymentauth/credential"\s*:`)

	// isPayment matches a challenge that demands a payment.
	isPayment = regexp.MustCompile(`(?i)^[` + tchar + `]*` + scheme + `|` + invoice)
	mention   = regexp.MustCompile(`(?i)` + scheme + `|` + invoice)

	// element matches one element of the list: the beginning of a challenge (whose scheme is captured), or a further
	// parameter.
	element = regexp.MustCompile(`^[ \t,]*((` + token + `)(?: +(?:` + param + `|` + token68 + `))?|` + param + `)[ \t]*(?:,|$)`)

	// lookalike matches text in which a client that searches for challenges would find one, even in a quoted string.
	lookalike = regexp.MustCompile(`(?i)` + scheme + `[` + tchar + `]*[^!-~]+(?:[!#-+\--<>-~]+[^!-~]*)?=`)

	// escape matches an escape in JSON: the code of an ASCII character, or an escaped character.
	escape = regexp.MustCompile(`\\(?:u00[0-9a-fA-F]{2}|(?s:.))`)

	// credential matches in the usual headers, and credentialElsewhere one of MPP (JSON in base64) in any other header: a
	// challenge can name the header to use.
	credential          = regexp.MustCompile(`(?i)(?:^|,)[^!-~]*` + scheme + `(?:[^` + tchar + `]|$)`)
	credentialElsewhere = regexp.MustCompile(`(?i)(?:^|,)[^!-~]*payment[^!-~]+e[wy][!-~]{30}`)
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
	return credentialMember.Match(escape.ReplaceAllFunc(whole, unescaped)), err
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

// clean removes the payment challenges of other protocols, and terms from responses other than a 402: some clients pay
// them whatever the status.
func clean(response *http.Response) {
	removeChallenges(response.Header)
	for name := range response.Header {
		if response.StatusCode != http.StatusPaymentRequired && isOneOf(name, termsHeaders) {
			delete(response.Header, name)
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

// withoutPayments removes the payment challenges from a value. An ambiguous value that mentions a payment is removed
// completely (the result is empty). A value without a payment challenge is returned unchanged.
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
		if text := value[one.start:one.end]; !isPayment.MatchString(text) {
			others = append(others, text)
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

type challenge struct{ start, end int }

// parsed returns the challenges of a value, and whether the value follows the grammar.
func parsed(value string) ([]challenge, bool) {
	var challenges []challenge
	for at := 0; strings.Trim(value[at:], " \t,") != ""; {
		found := element.FindStringSubmatchIndex(value[at:])
		switch {
		case found == nil:
			return nil, false
		case found[4] >= 0:
			challenges = append(challenges, challenge{at + found[2], at + found[3]})
		case len(challenges) > 0:
			challenges[len(challenges)-1].end = at + found[3]
		default:
			return nil, false
		}
		at += found[1]
	}
	return challenges, true
}
