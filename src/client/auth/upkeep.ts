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
