module clresolve/guard

go 1.19
