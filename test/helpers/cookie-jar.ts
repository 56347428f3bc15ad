/** The part of a browser that keeps cookies: for one host, by path, with an end. */
export interface CookieJar {
  /** As fetch, with the cookies that belong to the address and an `Origin` when there is one. */
  fetch(url: string, init?: RequestInit): Promise<Response>;
  names(): string[];
  find(name: string): StoredCookie | undefined;
}

export interface StoredCookie {
  value: string;
  path: string;
  attributes: string[];
}

export function openCookieJar(origin?: string): CookieJar {
  const cookies = new Map<string, StoredCookie>();
  return {
    async fetch(url, init = {}) {
      const { pathname } = new URL(url);
      const fitting = [...cookies].filter(([, { path }]) => pathname === path || pathname.startsWith(`${path}/`));
      const headers = new Headers(init.headers);
      if (fitting.length > 0) headers.set('cookie', fitting.map(([name, { value }]) => `${name}=${value}`).join('; '));
      if (origin) headers.set('origin', origin);
      const response = await fetch(url, { redirect: 'manual', ...init, headers });
      for (const line of response.headers.getSetCookie()) keep(cookies, line);
      return response;
    },
    names: () => [...cookies.keys()],
    find: (name) => cookies.get(name),
  };
}

function keep(cookies: Map<string, StoredCookie>, line: string): void {
  const [pair, ...attributes] = line.split(/; */);
  const name = pair!.slice(0, pair!.indexOf('='));
  if (attributes.includes('Max-Age=0')) {
    cookies.delete(name);
    return;
  }
  const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('Path='.length) ?? '/';
  cookies.set(name, { value: pair!.slice(name.length + 1), path, attributes });
}
