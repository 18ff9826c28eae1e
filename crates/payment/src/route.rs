//! Which URL an entry stands for, and whether the URL that answered is that one.
