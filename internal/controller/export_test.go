package controller

// LookEvery is how often kinds are looked for.
const LookEvery = lookEvery
