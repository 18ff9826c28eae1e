package guard

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

const (
	// jwsType is the `typ` header of a signed decision.
	jwsType = "clresolve-decision+jwt"

	// skewSeconds is the maximum difference between the clocks of signer and guard.
	skewSeconds = 30

	// maxLifetimeSeconds is the maximum time from `iat` to `exp`.
	maxLifetimeSeconds = 3600

	// maxEntries is the maximum number of entries of a 402 response that the daemon reads.
	maxEntries = 32
)

// decision holds the members of a decision or check that the guard relies on. If one of them is malformed, the whole
// decision is refused.
type decision struct {
	abort bool
	// codes are those that decide.
	codes   []string
	passing []entry
	// until is the zero time if the decision is never valid.
	until time.Time
	// document is the whole decision, as the daemon sent it.
	document json.RawMessage
}

// entry is the index of an entry that may be paid, and the time until which it may be paid.
type entry struct {
	index int
	until time.Time
}

// endOf returns an allowed entry with its own deadline or else that of the decision.
func endOf(index int, own json.RawMessage, shared time.Time) (entry, error) {
	until := shared
	if own != nil {
		var err error
		if until, err = timeOf(own); err != nil {
			return entry{}, err
		}
	}
	if until.IsZero() {
		return entry{}, errNoDecision
	}
	return entry{index, until}, nil
}

var errNoDecision = errors.New("not a decision")

// readDecision reads the decision of this schema, about this name and verb. A check has the members of a decision. An
// empty name or verb was not asked about, and is not compared.
func readDecision(text []byte, schema, name, verb string) (*decision, error) {
	// A pointer distinguishes a missing member from an empty one.
	var read struct {
		Schema   string    `json:"schema"`
		Name     string    `json:"name"`
		Verb     string    `json:"verb"`
		Decision string    `json:"decision"`
		Abort    *bool     `json:"abort"`
		Codes    *[]string `json:"codes"`
		Entries  *[]struct {
			Index      *int            `json:"index"`
			Abort      *bool           `json:"abort"`
			ValidUntil json.RawMessage `json:"valid_until"`
		} `json:"entries"`
		Reasons    json.RawMessage `json:"reasons"`
		ValidUntil json.RawMessage `json:"valid_until"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	isKnown := read.Decision == "allow" || read.Decision == "deny" || read.Decision == "undecided"
	if read.Schema != schema || !isKnown || read.Abort == nil || read.Codes == nil || read.Entries == nil {
		return nil, errNoDecision
	}
	if name != "" && read.Name != name || verb != "" && read.Verb != verb {
		return nil, errNoDecision
	}
	// abort is false if and only if the decision is `allow`.
	if *read.Abort != (read.Decision != "allow") {
		return nil, errNoDecision
	}
	until, err := timeOf(read.ValidUntil)
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	var passing []entry
	for _, one := range *read.Entries {
		if one.Index == nil || one.Abort == nil || *one.Index < 0 || *one.Index >= maxEntries || seen[*one.Index] {
			return nil, errNoDecision
		}
		seen[*one.Index] = true
		if *one.Abort {
			continue
		}
		ended, err := endOf(*one.Index, one.ValidUntil, until)
		if err != nil {
			return nil, err
		}
		passing = append(passing, ended)
	}
	return &decision{*read.Abort, withoutWarnings(*read.Codes, read.Reasons), passing, until, text}, nil
}

// withoutWarnings returns the codes that are not warnings. The first always remains: if the gate denies a warning, its
// code is the first one.
func withoutWarnings(codes []string, reasons json.RawMessage) []string {
	var listed []struct{ Code, Effect string }
	// Malformed reasons name no warnings.
	_ = json.Unmarshal(reasons, &listed)
	isWarning := map[string]bool{}
	for _, reason := range listed {
		if reason.Effect == "warn" {
			isWarning[reason.Code] = true
		}
	}
	var deciding []string
	for at, code := range codes {
		if at == 0 || !isWarning[code] {
			deciding = append(deciding, code)
		}
	}
	return deciding
}

func timeOf(text json.RawMessage) (time.Time, error) {
	if string(text) == "null" {
		return time.Time{}, nil
	}
	var written string
	if err := json.Unmarshal(text, &written); err != nil || !strings.HasSuffix(written, "Z") {
		return time.Time{}, errNoDecision
	}
	return time.Parse(time.RFC3339, written)
}

// Signer is the signer of decisions.
type Signer struct {
	// Issuer is sign.issuer of the daemon's configuration.
	Issuer string
	// Keys are the trusted keys by their key identifiers.
	Keys map[string]ed25519.PublicKey
}

// ParseKeys parses keys in the form of the daemon's /.well-known/jwks.json. Get them over a channel that you trust.
func ParseKeys(jwks []byte) (map[string]ed25519.PublicKey, error) {
	var read struct {
		Keys []struct{ Kty, Crv, Kid, X string }
	}
	if err := json.Unmarshal(jwks, &read); err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, key := range read.Keys {
		if key.Kty != "OKP" || key.Crv != "Ed25519" {
			continue
		}
		bytes, err := decoded(key.X)
		if err != nil || len(bytes) != ed25519.PublicKeySize || key.Kid == "" {
			return nil, errors.New("not a key of Ed25519")
		}
		keys[key.Kid] = bytes
	}
	return keys, nil
}

// openJWS returns the decision from a currently valid JWS that the signer issued for this question, whose digest is
// asked.
func openJWS(text string, signer *Signer, asked string, now int64) ([]byte, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, errNoDecision
	}
	var header map[string]string
	if err := unmarshalPart(parts[0], &header); err != nil {
		return nil, err
	}
	key, isKnown := signer.Keys[header["kid"]]
	if len(header) != 3 || header["alg"] != "EdDSA" || header["typ"] != jwsType || !isKnown {
		return nil, errNoDecision
	}
	signature, err := decoded(parts[2])
	if err != nil || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return nil, errNoDecision
	}
	var claims struct {
		Iss      string          `json:"iss"`
		Iat      *int64          `json:"iat"`
		Exp      *int64          `json:"exp"`
		Request  string          `json:"request"`
		Decision json.RawMessage `json:"decision"`
	}
	if err := unmarshalPart(parts[1], &claims); err != nil {
		return nil, err
	}
	// Otherwise a decision about other terms would be accepted.
	if claims.Iss != signer.Issuer || claims.Request != asked || claims.Iat == nil || claims.Exp == nil {
		return nil, errNoDecision
	}
	iat, exp := *claims.Iat, *claims.Exp
	if exp <= iat || exp-iat > maxLifetimeSeconds || now >= exp+skewSeconds || iat > now+skewSeconds {
		return nil, errNoDecision
	}
	return bytes.TrimSpace(claims.Decision), nil
}

func unmarshalPart(part string, into any) error {
	text, err := decoded(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func decoded(part string) ([]byte, error) {
	return base64.RawURLEncoding.Strict().DecodeString(part)
}
