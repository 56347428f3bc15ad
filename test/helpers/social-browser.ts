import { expect } from 'vitest';
import { setSocialProvider } from '../../src/features/users/social/social-provider.js';
import type { TestProject } from './build-project.js';
import { openCookieJar, type CookieJar } from './cookie-jar.js';
import type { TestApp } from './open-test-app.js';
import type { IssuerBehaviour, SocialIssuer } from './social-issuer.js';
import type { UserClient } from './user-client.js';

export const HOME = 'https://app.example.test/signed-in';

export interface SocialReply {
  accessToken: string;
  user: { _id: string; email: string; emailVerified: boolean };
}

/** What people do with a browser at a provider of a project. */
export interface SocialBrowser {
  /** From the button to the address of the application that the browser is sent back to. */
  visit(person: IssuerBehaviour, query?: string, jar?: CookieJar): Promise<URL>;
  /** Signs in all the way; the reply of the exchange. */
  signIn(person: IssuerBehaviour): Promise<SocialReply>;
}

/** Sets the issuer up as `provider` of the project. */
export async function openSocialBrowser(
  test: TestApp,
  issuer: SocialIssuer,
  { project, publishable }: TestProject,
  client: UserClient,
  provider = 'acme',
): Promise<SocialBrowser> {
  const { url, clientId, clientSecret } = issuer;
  await setSocialProvider(test.app, project, {
    name: provider,
    issuer: url,
    clientId,
    clientSecret,
    redirectUrls: [HOME],
  });
  const visit: SocialBrowser['visit'] = async (person, query = '', jar = openCookieJar()) => {
    issuer.behaviour = person;
    const out = await jar.fetch(`${test.url}/api/userAuth/social/${provider}/start?key=${publishable}${query}`);
    expect(out.status).toBe(302);
    const back = await jar.fetch(await issuer.visit(out.headers.get('location')!));
    expect(back.status).toBe(302);
    return new URL(back.headers.get('location')!);
  };
  return {
    visit,
    async signIn(person) {
      const home = await visit(person);
      const reply = await client.post('/social/exchange', { rtCode: home.searchParams.get('rtCode') });
      expect([reply.status, home.search]).toEqual([200, expect.stringContaining('rtCode=')]);
      return reply.body as SocialReply;
    },
  };
}
