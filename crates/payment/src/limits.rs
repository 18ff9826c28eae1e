//! What the operator permits to be paid, and what a caller tightens.
