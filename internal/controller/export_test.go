package controller

// LookEvery is how often kinds are looked for.
const LookEvery = lookEvery

// RetryForeign is when templates of others are looked for again.
var RetryForeign = retryForeign
