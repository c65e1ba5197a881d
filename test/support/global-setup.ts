/** Runs once before all tests; what every test shares is started here. */
export default function setup(): void {}
