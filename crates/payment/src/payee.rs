//! Whom a name says to pay, and how that is known.
