import { describe, expect, it } from 'vitest';
import { OPERATOR_PREFIX, PROVIDER_OPERATIONS, type Route } from '../../world/app.js';
import { setMailSettings } from '../../world/projects.js';
import { buildProject } from '../../helpers/build-project.js';
import { startMailProviderDouble } from '../../helpers/mail-provider-double.js';
import { buildOperator } from '../../helpers/operator-client.js';
import { use, useTestApp } from '../../helpers/use.js';
// What the mail provider answers reaches whoever asked in our words (rest-api.md 4.4), by either way in. The operations
// are those of the routes, so that one that is added is asked too.

const provider = use(await startMailProviderDouble());
const test = await useTestApp({ settings: { BSVC_MAIL_RATE: 'off', RESEND_BASE_URL: provider.url } });
const owner = await buildProject(test.app);
const { token } = await buildOperator(test);

const MESSAGES: Readonly<Record<string, string>> = {
  MAIL_KEY_REFUSED: 'The email provider rejects the project’s key',
  NOT_FOUND: 'The email provider does not know this id',
  INVALID_MAIL: 'The mail provider says: the double says no',
  RATE_LIMITED: 'The mail provider’s rate limit is exceeded',
  MAIL_PROVIDER_UNAVAILABLE: 'The mail provider cannot be reached',
  BYOK_REQUIRED: 'This needs the project’s own mail provider key (providerApiKey)',
};

/** What the provider answers, and what is made of it. */
const ANSWERS: readonly (readonly [number, string])[] = [
  [401, '403 MAIL_KEY_REFUSED'],
  [403, '403 MAIL_KEY_REFUSED'],
  [404, '404 NOT_FOUND'],
  [422, '400 INVALID_MAIL'],
  [429, '429 RATE_LIMITED'],
  [500, '503 MAIL_PROVIDER_UNAVAILABLE'],
  [503, '503 MAIL_PROVIDER_UNAVAILABLE'],
];

const refusal = (outcome: string): object => ({ outcome, message: MESSAGES[outcome.split(' ')[1]!] });

/** The answer to the operation's own example, with this key at the provider, and how many calls that made there. */
async function ask({ method, path, example }: Route, providerApiKey: string | null): Promise<object> {
  await setMailSettings(test.app, owner.project, { providerApiKey });
  const before = provider.calls.length;
  const address = path.replace(':projectId', owner.project._id.toHexString()).replace(/:\w+/g, 'known_1');
  const own: Record<string, string> = path.startsWith(OPERATOR_PREFIX)
    ? { authorization: `Bearer ${token}` }
    : { 'x-api-key': owner.secret };
  const reply = await fetch(test.url + address, {
    method,
    headers: { ...own, 'content-type': 'application/json' },
    ...(example !== undefined && { body: JSON.stringify({ from: 'a@example.test', ...(example as object) }) }),
  });
  const { code = '', message } = (await reply.json()) as { code?: string; message: string };
  return { outcome: `${reply.status} ${code}`, message, calls: provider.calls.length - before };
}

describe.each(PROVIDER_OPERATIONS.flatMap(({ byKey, byOperator }) => [byKey, byOperator]))('$method $path', (route) => {
  it('needs a key of the project’s own', async () => {
    expect(await ask(route, null)).toEqual({ ...refusal('403 BYOK_REQUIRED'), calls: 0 });
  });

  it.each(ANSWERS)('makes of the provider’s %s: %s', async (status, outcome) => {
    expect(await ask(route, `re_${status}`)).toEqual({ ...refusal(outcome), calls: 1 });
  });
});
