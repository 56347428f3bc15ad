import type { Account } from './account.js';
import type { StepUpProof } from './factors.js';
import type { TokenReply } from './renewal.js';

/** Functions of the own account that a page seldom calls. */
export interface Upkeep {
  stepUp(proof: StepUpProof): Promise<void>;
  sendStepUpCode(): Promise<void>;
  deleteAccount(proof?: StepUpProof): Promise<void>;
  changePassword(passwords: object): Promise<void>;
  requestPasswordReset(email: string): Promise<void>;
  updateProfile(changes: object): Promise<unknown>;
  resetPassword(reset: { email: string; otp: string; newPassword: string }): Promise<void>;
  verifyEmail(code: { email: string; otp: string }): Promise<void>;
  resendVerification(email: string): Promise<void>;
  publicProfile(username: string): Promise<never>;
}

export function openUpkeep<User>({ connection, keep, kept, pathPart }: Account<User>): Upkeep {
  const post = <T>(path: string, body?: unknown): Promise<T> =>
    connection.send<T>({ method: 'POST', path: `/userAuth/${path}`, body, repeat: 'no' });
  return {
    async stepUp(proof) {
      const { accessToken } = await post<TokenReply>('step-up', proof);
      const session = kept.read();
      if (session) await kept.write({ ...session, accessToken });
    },
    sendStepUpCode: async () => void (await post('step-up/code')),
    async deleteAccount(proof) {
      await connection.send({ method: 'DELETE', path: '/userAuth/me', body: proof });
      await kept.end('signed-out');
    },
    async updateProfile(changes) {
      const call = { method: 'PATCH', path: '/userAuth/update-profile', body: changes } as const;
      return keep((await connection.send<{ data: User }>(call)).data);
    },
    changePassword: async (passwords) => void (await post('change-password', passwords)),
    requestPasswordReset: async (email) => void (await post('request-password-reset', { email })),
    resetPassword: async (reset) => void (await post('reset-password', reset)),
    verifyEmail: async (code) => void (await post('verify-email', code)),
    resendVerification: async (email) => void (await post('resend-verification-otp', { email })),
    publicProfile: (username) => connection.send({ path: `/userAuth/public/${pathPart(username, 'INVALID_NAME')}` }),
  };
}

/** Sign-in with an email code. */
export interface Code<User> {
  send(email: string, redirect?: string): Promise<void>;
  signIn(code: { email: string; otp: string }): Promise<User>;
}

export function openCode<User>({ connection, enter }: Account<User>): Code<User> {
  return {
    async send(email, redirect) {
      const body = { email, ...(redirect !== undefined && { redirect }) };
      await connection.send({ method: 'POST', path: '/userAuth/login/code', body, repeat: 'no', isAnonymous: true });
    },
    signIn: (code) => enter('login/code/verify', code),
  };
}

const NO_CRYPTO =
  'Social sign-in needs Web Crypto (crypto.getRandomValues and crypto.subtle), which this platform lacks: load a polyfill before the client';

/** Sign-in at another service, and the way back. */
export interface Social<User> {
  socialUrl(provider: string, redirect?: string): Promise<string>;
  finishSocial(rtCode: string): Promise<User>;
}

/** What proves that both steps were taken in the same place is stored between them. */
export function openSocial<User>(account: Account<User>): Social<User> {
  const { connection, store, enter, pathPart, refuse, tools } = account;
  const { randomKey, platform } = tools;
  const verifierPlace = `${connection.name}:verifier`;
  return {
    async socialUrl(provider, redirect) {
      const { subtle } = platform.crypto ?? {};
      if (!subtle) throw refuse(NO_CRYPTO, { status: 0, code: 'NO_CRYPTO' });
      const verifier = randomKey() + randomKey();
      await store.set(verifierPlace, verifier);
      const digest = await subtle.digest('SHA-256', new TextEncoder().encode(verifier));
      const challenge = btoa(String.fromCharCode(...new Uint8Array(digest)));
      const parameters = {
        key: connection.key,
        code_challenge: challenge.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, ''),
        ...(redirect !== undefined && { redirect }),
      };
      const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
      const path = `/api/userAuth/social/${pathPart(provider, 'INVALID_NAME')}/start`;
      return `${connection.url}${path}?${query.join('&')}`;
    },
    async finishSocial(rtCode) {
      const verifier = await store.get(verifierPlace);
      await store.set(verifierPlace, null);
      return enter('social/exchange', { rtCode, ...(verifier !== null && { code_verifier: verifier }) });
    },
  };
}
