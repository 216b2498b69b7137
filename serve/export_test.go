package serve

// Patient lets tests use a shorter time.
var Patient = patient
