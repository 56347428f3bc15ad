const MIN_DISTINCT = 5;

// Secrets found in examples; compared without case, signs and a number behind.
const SAMPLES = new Set(
  'admin admintoken adminsecret changeme changemeplease changethis default example examplekey examplesecret keyboardcat mysecret mysecretkey mytoken password placeholder replaceme sample secret secretkey supersecret supersecretkey test testsecret testtoken token yoursecret yoursecretkey yoursecretkeyhere yoursecrethere yourtoken yourtokenhere yourkeyhere'.split(
    ' ',
  ),
);

/** Why a secret can be guessed, in words that follow its name; null when nothing speaks against it. */
export function findWeakness(secret: string, leastCharacters: number): string | null {
  const word = secret
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .replace(/\d+$/, '');
  if (SAMPLES.has(word)) return 'is one that is found in examples';
  if (secret.length < leastCharacters) return `is shorter than ${leastCharacters} characters`;
  if (new Set(secret).size < MIN_DISTINCT) return 'repeats the same few characters';
  return null;
}
