import { createClient } from '@bsvc/client';

// The page and the API have one address: bsvc serves the built page, and Vite passes requests on.
export const api = createClient({
  url: location.origin,
  key: import.meta.env.VITE_BSVC_KEY,
  cookies: true, // no script can read the refresh token
});
