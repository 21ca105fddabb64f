"""Why a number is what it is: what two protocols, or two reports, differ by, and what gives it."""
