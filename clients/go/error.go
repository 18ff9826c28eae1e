package guard

import (
	"fmt"
	"regexp"
	"strings"
)

// Code is the kind of a refusal.
type Code string

const (
	// Denied: clresolve denies the agent, or every entry of its terms.
	Denied Code = "denied"
	// Unavailable: clresolve did not answer in time, or its answer is not usable.
	Unavailable Code = "unavailable"
	// Redirected: the seller redirects to another URL.
	Redirected Code = "redirected"
	// Unreadable: the 402 response is larger than 64 KiB, takes longer than 10 s, is truncated, or is encoded more than
	// once.
	Unreadable Code = "unreadable"
	// NoDecision: no pending decision allows a payment at this URL: none was made, it has expired, or it was used.
	NoDecision Code = "no-decision"
	// TwoPayments: the request contains more than one payment.
	TwoPayments Code = "two-payments"
	// PaymentDenied: the signed payment differs from what was allowed.
	PaymentDenied Code = "payment-denied"
	// OtherProtocol: the request carries a credential of another payment protocol, of Payment, L402 or LSAT.
	OtherProtocol Code = "other-protocol"
)

var messages = map[Code]string{
	Denied:        "clresolve denies this agent or its terms",
	Unavailable:   "no usable answer from clresolve",
	Redirected:    "the seller redirects to another URL",
	Unreadable:    "the seller's 402 is larger than 64 KiB, takes longer than 10 s, is truncated, or cannot be decoded",
	NoDecision:    "no decision allows a payment to this URL: none was made, it has expired, or it was used",
	TwoPayments:   "the request contains more than one payment",
	PaymentDenied: "the signed payment differs from what was allowed",
	OtherProtocol: "the request contains a payment of another protocol than x402",
}

// Error is a refusal: nothing was paid.
type Error struct {
	// Code is the kind of the refusal.
	Code Code
	// Codes are those of the daemon's reasons that decide, without warnings; `clresolve explain CODE` explains them.
	Codes []string
	// Cause is the local error behind Unavailable or Unreadable, or nil. No message contains its text.
	Cause error

	// detail continues the message: the daemon's URL, and what happened.
	detail string
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	return e.Cause
}

// Error implements error.
func (e *Error) Error() string {
	why := ""
	if len(e.Codes) > 0 {
		why = fmt.Sprintf(" (%s)", strings.Join(e.Codes, ", "))
	}
	return fmt.Sprintf("not paying: %s%s%s", messages[e.Code], e.detail, why)
}

// code matches a reason in the daemon's format, of at most 64 characters. Messages contain no other foreign text.
var code = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

const maxCodeLength = 64

func newError(what Code, codes []string) *Error {
	refusal := &Error{Code: what}
	for _, one := range codes {
		if len(one) <= maxCodeLength && code.MatchString(one) {
			refusal.Codes = append(refusal.Codes, one)
		}
	}
	return refusal
}
