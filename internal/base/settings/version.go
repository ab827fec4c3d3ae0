package settings

// Version is kumo's version.
const Version = "0.1.0"
