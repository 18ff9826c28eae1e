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
	decisionSchema = "clresolve.decision/1"

	// jwsType is `typ` of a signed decision.
	jwsType = "clresolve-decision+jwt"

	// skewSeconds by which the clocks of signer and guard may differ.
	skewSeconds = 30

	// maxLifetimeSeconds from `iat` to `exp`.
	maxLifetimeSeconds = 3600

	// maxEntries of a reply, as the daemon reads them.
	maxEntries = 32
)

// decision holds what the guard relies on: every member has the one form that it can have, or the whole is refused.
type decision struct {
	abort   bool
	codes   []string
	passing []entry
	// until is the zero time where the decision holds at no time.
	until time.Time
	// document is the whole decision, as the daemon wrote it.
	document json.RawMessage
}

// entry is the place of an entry that may be paid, and until when.
type entry struct {
	index int
	until time.Time
}

// endOf returns the entry that passes with its own end, else that of the decision.
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

// readDecision reads the decision about this agent and verb.
func readDecision(text []byte, name, verb string) (*decision, error) {
	// A pointer tells a member that is missing from one that is empty.
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
		ValidUntil json.RawMessage `json:"valid_until"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	isKnown := read.Decision == "allow" || read.Decision == "deny" || read.Decision == "undecided"
	if read.Schema != decisionSchema || !isKnown || read.Abort == nil || read.Codes == nil || read.Entries == nil {
		return nil, errNoDecision
	}
	if read.Name != name || read.Verb != verb {
		return nil, errNoDecision
	}
	// What is not allowed aborts, and what does not abort is allowed.
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
	return &decision{*read.Abort, *read.Codes, passing, until, text}, nil
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

// Signer says who signs decisions.
type Signer struct {
	// Issuer is sign.issuer of the daemon's configuration.
	Issuer string
	// Keys are trusted, by their key identifiers.
	Keys map[string]ed25519.PublicKey
}

// ParseKeys reads the keys that /.well-known/jwks.json of the daemon has. Hand them over by a way that you trust.
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

// openJWS returns the decision in a JWS that the signer made for this question, of which asked is the digest, and that
// holds now.
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
	// Without the digest an answer to another question, about other terms, would pass.
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
