import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Provider, type Configuration, type KoaContextWithOIDC } from 'oidc-provider';
import { openCookieJar } from './cookie-jar.js';
import { listen } from './listen.js';

/** A person with an account at the issuer. */
export interface IssuerPerson {
  sub: string;
  email?: string;
  emailVerified?: boolean | 'true';
  name?: string;
}

/** A certified OpenID issuer (npm oidc-provider) on this machine, where whoever comes is `person`. */
export interface OidcIssuer {
  url: string;
  clientId: string;
  clientSecret: string;
  /** Of an own app, which gets id tokens without a secret. */
  appClientId: string;
  person: IssuerPerson;
  /** The forms that it has browsers post, by address: of `response_mode=form_post`. */
  visit(address: string): Promise<{ address: string; form: URLSearchParams | null }>;
  /** The id token that an own app gets for a nonce. */
  idToken(nonce: string, clientId?: string): Promise<string>;
  close(): Promise<void>;
}

const APP_HOME = 'https://app.example.test/native';

/** `callback` is the address that the service has registered; a client secret of its own unless one is verified. */
export async function openOidcIssuer(callback: string): Promise<OidcIssuer> {
  let answer: ReturnType<Provider['callback']> | null = null;
  const server = createServer((request, response) => void answer!(request, response));
  const { url, close } = await listen(server);
  const people = new Map<string, IssuerPerson>();
  const [clientId, appClientId, strangerId] = ['web', 'native', 'stranger'];
  const clientSecret = `secret-${randomUUID()}`;
  const jwk = (kid: string, key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey) => ({
    ...key.export({ format: 'jwk' }),
    kid,
    use: 'sig',
    alg: 'RS256',
  });
  const native = (id: string) => ({
    client_id: id,
    redirect_uris: [APP_HOME],
    response_types: ['id_token' as const],
    grant_types: ['implicit' as const],
    token_endpoint_auth_method: 'none' as const,
  });
  const settings: Configuration = {
    clients: [
      { client_id: clientId, client_secret: clientSecret, redirect_uris: [callback] },
      native(appClientId),
      native(strangerId),
    ],
    responseTypes: ['code', 'id_token'],
    cookies: { keys: [randomUUID()] },
    jwks: { keys: [jwk('one')] },
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    findAccount: (_ctx, accountId) => {
      const { email, emailVerified, name } = people.get(accountId)!;
      return { accountId, claims: () => ({ sub: accountId, email, email_verified: emailVerified as boolean, name }) };
    },
    async loadExistingGrant(ctx: KoaContextWithOIDC) {
      const { client, session, provider: own } = ctx.oidc;
      const grant = new own.Grant({ clientId: client!.clientId, accountId: session!.accountId });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  };
  const provider = new Provider(url, settings);
  provider.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/interaction/')) return next();
    const { person } = issuer;
    people.set(person.sub, person);
    await provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: person.sub } });
    ctx.respond = false;
  });
  answer = provider.callback();

  const visit: OidcIssuer['visit'] = async (address) => {
    // Somebody else each time.
    const jar = openCookieJar();
    let next = address;
    for (let steps = 0; steps < 10; steps++) {
      const reply = await jar.fetch(next);
      const target = reply.headers.get('location');
      if (target === null) return readForm(await reply.text());
      next = new URL(target, next).href;
      if (!next.startsWith(url)) return { address: next, form: null };
    }
    throw new Error(`the issuer goes round in circles at ${next}`);
  };
  const issuer: OidcIssuer = {
    url,
    clientId,
    clientSecret,
    appClientId,
    person: { sub: 'nobody' },
    visit,
    async idToken(nonce, asClient = appClientId) {
      const query = new URLSearchParams({
        client_id: asClient,
        response_type: 'id_token',
        redirect_uri: APP_HOME,
        scope: 'openid email profile',
        nonce,
      });
      const { address } = await visit(`${url}/auth?${query}`);
      const token = new URLSearchParams(new URL(address).hash.slice(1)).get('id_token');
      if (!token) throw new Error(`the issuer sent the app to ${address}`);
      return token;
    },
    close,
  };
  return issuer;
}

/** The form of `response_mode=form_post`, which a browser posts by itself. */
function readForm(page: string): { address: string; form: URLSearchParams } {
  const address = /<form method="post" action="([^"]+)"/.exec(page)?.[1];
  if (address === undefined) throw new Error(`the issuer answered: ${page.slice(0, 500)}`);
  const fields = [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)];
  return { address, form: new URLSearchParams(fields.map(([, name, value]): [string, string] => [name!, value!])) };
}
