import { createSign, generateKeyPairSync, randomUUID, createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from './listen.js';

/** Who signs in at the issuer, and what goes wrong there. */
export interface IssuerBehaviour {
  sub: string;
  email?: string;
  emailVerified?: boolean;
  name?: string;
  /** Changes the id token's claims, for example to another audience. */
  claims?: Record<string, unknown>;
  /** Signs the id token with a key that is not published. */
  wrongKey?: boolean;
  /** The person declines. */
  declines?: boolean;
  /** The token endpoint answers 500. */
  broken?: boolean;
}

/** A small OpenID issuer and GitHub on this machine, strict about what it is sent. */
export interface SocialIssuer {
  url: string;
  clientId: string;
  clientSecret: string;
  behaviour: IssuerBehaviour;
  /** The one way in which its token endpoint takes the client's secret, as its discovery says; null says nothing. */
  clientAuthentication: 'client_secret_post' | 'client_secret_basic' | null;
  /** Judges the client's secret instead of comparing it. */
  takesSecret: ((secret: string) => boolean) | null;
  /** What a browser does there: opens the address, signs in, and answers where it is sent back to. */
  visit(address: string): Promise<string>;
  /** An id token as an app gets it from the issuer; `nonce` as the token has it. */
  idToken(nonce: string): string;
  close(): Promise<void>;
}

interface Grant {
  clientId: string;
  redirectUri: string;
  challenge: string;
  nonce: string | null;
  behaviour: IssuerBehaviour;
}

const KID = 'issuer-key';

export async function openSocialIssuer(): Promise<SocialIssuer> {
  const published = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const unknown = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const grants = new Map<string, Grant>();
  const accessTokens = new Map<string, IssuerBehaviour>();
  const server = createServer((request, response) => {
    answer(request, response).catch(() => refuse(response, 500, 'issuer_failed'));
  });
  const { url, close } = await listen(server);
  const issuer: SocialIssuer = {
    url,
    clientId: 'client-1',
    clientSecret: `issuer-secret-${randomUUID()}`,
    behaviour: { sub: 'person-1' },
    clientAuthentication: null,
    takesSecret: null,
    async visit(address) {
      const response = await fetch(address, { redirect: 'manual' });
      const target = response.headers.get('location');
      if (!target) throw new Error(`the issuer answered ${response.status}: ${await response.text()}`);
      return target;
    },
    idToken: (nonce) => signIdToken({ behaviour: issuer.behaviour, nonce, clientId: issuer.clientId }),
    close,
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const address = new URL(request.url!, url);
    const routes: Record<string, () => unknown> = {
      '/.well-known/openid-configuration': () => ({
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        userinfo_endpoint: `${url}/userinfo`,
        jwks_uri: `${url}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        code_challenge_methods_supported: ['S256'],
        ...(issuer.clientAuthentication && {
          token_endpoint_auth_methods_supported: [issuer.clientAuthentication],
        }),
      }),
      '/jwks': () => ({
        keys: [{ ...published.publicKey.export({ format: 'jwk' }), kid: KID, alg: 'RS256', use: 'sig' }],
      }),
      '/authorize': () => authorize(address, response),
      '/login/oauth/authorize': () => authorize(address, response),
      '/token': () => exchange(request, response, true),
      '/login/oauth/access_token': () => exchange(request, response, false),
      '/userinfo': () =>
        withToken(request, response, ({ sub, email, emailVerified, name }) => ({
          sub,
          email,
          email_verified: emailVerified,
          name,
        })),
      '/api/v3/user': () =>
        withToken(request, response, ({ sub, name }) => ({ id: Number(sub), login: 'octo', name: name ?? null })),
      '/api/v3/user/emails': () =>
        withToken(request, response, ({ email, emailVerified }) => [
          { email: 'other@example.test', primary: false, verified: true },
          { email, primary: true, verified: emailVerified === true },
        ]),
    };
    const result: unknown = await routes[address.pathname]?.();
    if (response.headersSent) return;
    response.writeHead(result === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(result ?? { error: 'not_found' }));
  }

  function authorize(address: URL, response: ServerResponse): void {
    const query = address.searchParams;
    const callback = new URL(query.get('redirect_uri')!);
    const sound =
      query.get('client_id') === issuer.clientId &&
      query.get('response_type') === 'code' &&
      query.get('code_challenge_method') === 'S256' &&
      query.has('state');
    if (!sound) return refuse(response, 400, 'invalid_request');
    callback.searchParams.set('state', query.get('state')!);
    if (issuer.behaviour.declines) callback.searchParams.set('error', 'access_denied');
    else {
      const code = randomUUID();
      grants.set(code, {
        clientId: issuer.clientId,
        redirectUri: query.get('redirect_uri')!,
        challenge: query.get('code_challenge')!,
        nonce: query.get('nonce'),
        behaviour: { ...issuer.behaviour },
      });
      callback.searchParams.set('code', code);
    }
    response.writeHead(302, { location: callback.href });
    response.end();
  }

  async function exchange(request: IncomingMessage, response: ServerResponse, oidc: boolean): Promise<unknown> {
    const form = new URLSearchParams(await readText(request));
    const grant = grants.get(form.get('code') ?? '');
    grants.delete(form.get('code') ?? '');
    if (grant?.behaviour.broken) return refuse(response, 500, 'server_error');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const [id, secret] =
      issuer.clientAuthentication === 'client_secret_basic'
        ? readBasic(request.headers.authorization)
        : [form.get('client_id'), form.get('client_secret')];
    if (!(issuer.takesSecret?.(secret ?? '') ?? secret === issuer.clientSecret)) {
      return refuse(response, 401, 'invalid_client', 'the secret is not where it belongs');
    }
    const sound =
      grant && id === grant.clientId && form.get('redirect_uri') === grant.redirectUri && challenge === grant.challenge;
    if (!sound) return refuse(response, 400, 'invalid_grant');
    const accessToken = randomUUID();
    accessTokens.set(accessToken, grant.behaviour);
    return {
      access_token: accessToken,
      token_type: 'bearer',
      ...(oidc && { id_token: signIdToken(grant), expires_in: 60 }),
    };
  }

  function signIdToken({ behaviour, nonce, clientId }: Pick<Grant, 'behaviour' | 'nonce' | 'clientId'>): string {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: url,
      aud: clientId,
      sub: behaviour.sub,
      iat: now,
      exp: now + 60,
      ...(nonce && { nonce }),
      ...(behaviour.email && { email: behaviour.email, email_verified: behaviour.emailVerified ?? false }),
      ...(behaviour.name && { name: behaviour.name }),
      ...behaviour.claims,
    };
    const body = [{ alg: 'RS256', kid: KID }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const key = behaviour.wrongKey ? unknown.privateKey : published.privateKey;
    return `${body}.${createSign('RSA-SHA256').update(body).sign(key, 'base64url')}`;
  }

  function withToken(
    request: IncomingMessage,
    response: ServerResponse,
    present: (behaviour: IssuerBehaviour) => unknown,
  ): unknown {
    const behaviour = accessTokens.get((request.headers.authorization ?? '').replace(/^bearer /i, ''));
    return behaviour ? present(behaviour) : refuse(response, 401, 'invalid_token');
  }

  return issuer;
}

function refuse(response: ServerResponse, status: number, error: string, description?: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error, error_description: description }));
}

/** Id and secret of `Authorization: Basic`, each encoded as in a form (RFC 6749 2.3.1). */
function readBasic(header = ''): (string | undefined)[] {
  const text = Buffer.from(header.replace(/^Basic /, ''), 'base64').toString();
  return text.split(':').map((part) => decodeURIComponent(part.replaceAll('+', ' ')));
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
