import { presentProjectDetails } from '../../../src/features/management/present-project-details.js';
import { BYTE_LIMITS, OVERRIDABLE_LIMITS } from '../../../src/features/plans/plan-limits.js';
import { PLAN_NAMES } from '../../../src/features/projects/project.js';
import { CODE_LOGINS, MFA_MODES, type SignInSettings } from '../../../src/features/projects/sign-in-settings.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { TOKEN_ALGORITHMS } from '../../../src/platform/secrets/jwt.js';
import { parseBytes } from '../../../src/config/setting-readers.js';
import { changeProject } from '../../../src/features/declaration/plan-projects.js';
import { projectArgument } from '../../ask/choose-project.js';
import { choice, defineCommand, list, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { presentProjectTable } from './present.js';

export default defineCommand({
  details: 'Allowed domains and redirects replace the current ones. The limit "plan" resets to the plan’s limit.',
  examples: [
    'bsvc project update shop --plan pro',
    'bsvc project update shop --allowed-domain https://shop.example --allowed-domain "*.shop.example"',
    'bsvc project update shop --code-login signup --redirect https://shop.example/sign-in',
    'bsvc project update shop --limit mail=200 --limit database=2gb --limit webhooks=plan',
  ],
  audited: true,
  parameters: {
    project: projectArgument,
    name: option('--name <name>', 'new name'),
    plan: choice('--plan <plan>', 'limits to apply', PLAN_NAMES),
    allowedDomains: list('--allowed-domain <domain>', 'origin, host or *.base that browsers may call from'),
    mailFrom: option(
      '--mail-from <sender>',
      'default sender of emails: an address, or "Name <address>"; "none" for the server’s',
    ),
    publishableUploads: choice(
      '--publishable-uploads <on|off>',
      'allow uploads with publishable keys, and users to delete their uploads',
      ['on', 'off'],
    ),
    codeLogin: choice('--code-login <who>', 'who may sign in by a mailed code: no one, accounts, anybody', CODE_LOGINS),
    redirects: list('--redirect <url>', 'URL of the application that emails may link to; "none" removes all'),
    mfa: choice('--mfa <mode>', 'whether users may, or have to, enrol a second factor', MFA_MODES),
    mfaResetDelay: option('--mfa-reset-delay <time>', 'delay until a reset of a user’s MFA takes effect'),
    anonymous: choice('--anonymous <mode>', 'whether users may sign up as guests, without an address', ['on', 'off']),
    anonymousKeep: option('--anonymous-keep <time>', 'delete inactive anonymous users after this long'),
    tokens: choice(
      '--tokens <algorithm>',
      'signature of access tokens; ES256 lets other servers verify them',
      TOKEN_ALGORITHMS,
    ),
    passkeyRpId: option('--passkey-rp-id <host>', 'domain of passkeys (RP ID); "none" disables them'),
    passkeyOrigins: list('--passkey-origin <origin>', 'origin of the application that uses passkeys'),
    limits: list('--limit <name=value>', 'one limit of this project instead of the plan’s', readLimit),
  },
  async run(context, { project, name, plan, allowedDomains, mailFrom, publishableUploads, limits, ...ways }) {
    const signIn = readSignIn(ways);
    const single = [name, plan, publishableUploads, mailFrom, signIn];
    if (single.every((given) => given === undefined) && allowedDomains.length + limits.length === 0) {
      throw new UsageError(
        'Nothing to change: give --name, --plan, --allowed-domain, --mail-from, --publishable-uploads, --limit or a setting of sign-in.',
      );
    }
    const app = await context.app();
    const changed = await changeProject(app, await requireProject(app, project), {
      name,
      plan,
      ...(allowedDomains.length > 0 && { allowedDomains }),
      ...(publishableUploads && { publishableUploads: publishableUploads === 'on' }),
      ...(signIn && { signIn }),
      ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
      ...(mailFrom !== undefined && { providerFromEmail: mailFrom === 'none' ? null : mailFrom }),
    });
    const updated = presentProjectDetails(changed);
    return { json: updated, quiet: updated.id, text: (view) => presentProjectTable(view, updated) };
  },
});

/** Undefined when no setting of sign-in is given. */
function readSignIn({
  redirects,
  passkeyRpId,
  passkeyOrigins,
  anonymous,
  ...single
}: Omit<SignInSettings, 'redirects' | 'passkeys' | 'anonymous'> & {
  anonymous?: 'on' | 'off';
  redirects: readonly string[];
  passkeyRpId?: string;
  passkeyOrigins: readonly string[];
}): SignInSettings | undefined {
  if (passkeyOrigins.length > 0 !== (passkeyRpId !== undefined && passkeyRpId !== 'none')) {
    throw new UsageError('--passkey-rp-id and --passkey-origin go together.');
  }
  const given = {
    ...Object.fromEntries(Object.entries(single).filter(([, given]) => given !== undefined)),
    ...(anonymous !== undefined && { anonymous: anonymous === 'on' }),
    ...(passkeyRpId === 'none' && { passkeys: null }),
    ...(passkeyOrigins.length > 0 && { passkeys: { rpId: passkeyRpId!, origins: [...passkeyOrigins] } }),
    ...(redirects.length > 0 && { redirects: redirects.filter((url) => url !== 'none') }),
  };
  return Object.keys(given).length > 0 ? given : undefined;
}

function readLimit(text: string): [name: string, value: number | null] {
  const [, name, amount] = /^(\w+)=(\d+(?:[kKmMgG]?[bB])?|plan)$/.exec(text) ?? [];
  if (!name || !OVERRIDABLE_LIMITS.includes(name)) {
    throw new Error(`it must be name=number or name=plan, with one of ${OVERRIDABLE_LIMITS.join(', ')}.`);
  }
  if (amount === 'plan') return [name, null];
  if (/\D/.test(amount!) && !BYTE_LIMITS.includes(name)) {
    throw new Error(`${name} is a number without a unit, for example ${name}=200.`);
  }
  return [name, parseBytes(amount!)];
}
