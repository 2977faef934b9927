"""Forms: what is asked, how an answer is checked, and the live document between the two."""
