import type { App } from '../../src/app.js';
import { wholeWithin } from '../../src/config/setting-readers.js';
import { AppError, invalid } from '../../src/errors.js';
import { requireCollection } from '../../src/features/collections/collection-store.js';
import type { Collection } from '../../src/features/collections/collection.js';
import { USERS } from '../../src/features/collections/users-collection.js';
import { erasePerson } from '../../src/features/erasure/erase-person.js';
import type { Project } from '../../src/features/projects/project.js';
import { deleteUser } from '../../src/features/users/accounts/delete-user.js';
import { disableUser, enableUser } from '../../src/features/users/accounts/change-user.js';
import { emailTaken } from '../../src/features/users/accounts/insert-user.js';
import { listIdentities, presentIdentity, listPasskeys } from '../../src/features/users/accounts/sign-in-methods.js';
import { listUsers, presentAccount } from '../../src/features/users/accounts/list-users.js';
import { setPassword } from '../../src/features/users/accounts/password.js';
import { changeRoles, listRoles } from '../../src/features/users/accounts/user-roles.js';
import { isEmail, normaliseEmail, requireNewPassword } from '../../src/features/users/credentials.js';
import { requestReset } from '../../src/features/users/factors/reset-factors.js';
import { presentInvite, sendInvite } from '../../src/features/users/invites/invite.js';
import { endSession, listSessions, presentSession } from '../../src/features/users/sessions/end-sessions.js';
import { signUp } from '../../src/features/users/sign-up.js';
import { findUserByEmail, requireUser } from '../../src/features/users/user-store.js';
import { type User, nameOf } from '../../src/features/users/user.js';
import { chooseProject, defineProjectCommand, projectOption, defineUserCommand } from '../ask/choose.js';
import { defineCommand, flag, list, option, optionalArgument, secret } from '../shell/command.js';
import { readNewPassword } from '../shell/read-secret.js';
import { UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';
import { countOf, presentFound } from '../view/present.js';

/** One user as the result of a command that changed it; `done` is the line for a person. */
function presentUserResult(user: User, done: string): Result {
  const account = presentAccount(user);
  return { json: account, quiet: account._id, text: () => `${nameOf(user)} (${account._id}) ${done}` };
}

const AS_TEXT: ReadonlySet<string> = new Set(['String', 'Date', 'Ref']);

/**
 * `name=value` words as fields of a user: texts as they stand, everything else as JSON. The schema decides if they fit.
 */
export function readFields(words: readonly string[], { fields }: Pick<Collection, 'fields'>): Record<string, unknown> {
  return Object.fromEntries(
    words.map((word): [string, unknown] => {
      const [, name, text] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
      if (name === undefined || text === undefined) throw new UsageError(`--field takes name=value, not "${word}".`);
      if (name === 'password') {
        throw new UsageError('A password is never an argument: use --password-stdin or --password-env.');
      }
      if (name === 'email') throw new UsageError('The address is given by --email.');
      const declared = fields.find((field) => field.name === name);
      // One that is not declared is refused by its name, whatever it holds.
      return [name, !declared || AS_TEXT.has(declared.type) ? text : readJson(name, text)];
    }),
  );
}

function readJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UsageError(`The value of ${name} must be JSON, for example ${name}=7 or ${name}='{"a":true}'.`);
  }
}

const create = defineCommand({
  details: [
    'Protected fields can be set here. Without --verified, a code to verify the address is emailed to the user.',
    '--invite sends an email invitation instead of creating an account. It works once, within seven days, for a user with that verified address. Without --redirect it links to the first address of the project (project update --redirect). To add a membership document with the invitation, use POST /api/userAuth/invites.',
  ].join('\n'),
  examples: [
    'bsvc user create --project shop --email ann@example.com',
    'bsvc user create --project shop --email ann@example.com --password-env ANN_PASSWORD --field role=admin --verified',
    'bsvc user create --project shop --email ann@example.com --password-stdin --if-not-exists < password.txt',
    'bsvc user create --project shop --email grace@example.com --invite --role editor',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    email: option('--email <address>', 'e-mail address to sign in with'),
    password: secret('password', 'the password, 6 to 72 bytes'),
    fields: list('--field <name=value>', 'another field of the users collection (repeatable)'),
    verified: flag('--verified', 'mark the address as verified: no email'),
    ifNotExists: flag('--if-not-exists', 'exit 0 if the user exists'),
    invite: flag('--invite', 'send an invitation instead'),
    roles: list('--role <role>', 'with --invite: a role that the user gets (repeatable)'),
    redirect: option('--redirect <url>', 'with --invite: page that the email links to'),
  },
  async run(context, input) {
    const { stdin, env } = input.password;
    const isAccount = input.fields.length > 0 || input.verified || input.ifNotExists || stdin || env !== undefined;
    if (input.invite && isAccount) throw new UsageError('--invite takes --email, --role and --redirect alone.');
    if (!input.invite && (input.roles.length > 0 || input.redirect !== undefined)) {
      throw new UsageError('--role and --redirect go with --invite.');
    }
    const email = input.email ?? (await context.ask.text('E-mail address:', 'No address: add --email <address>'));
    if (!isEmail(normaliseEmail(email))) {
      throw invalid('INVALID_EMAIL', `"${email.slice(0, 100)}" is not an e-mail address`);
    }
    const { app, project } = await chooseProject(context, input.project);
    if (input.invite) return invite(app, project, { ...input, email });
    // Before the prompt, so that no password is typed in vain.
    const findExisting = () => findUserByEmail(app, project._id, normaliseEmail(email));
    const existing = await findExisting();
    if (existing && !input.ifNotExists) throw emailTaken();
    if (existing) return presentExisting(existing);
    const fields = readFields(input.fields, await requireCollection(app, project._id, USERS));
    const password = await readNewPassword(context, input.password, 'Password');
    const body = { ...fields, email, password, ...(input.verified && { emailVerified: true }) };
    let user: User;
    try {
      user = await signUp(app, project, body, 'project');
    } catch (error) {
      // Another process may have created it in the meantime.
      const taken = error instanceof AppError && error.code === 'EMAIL_TAKEN';
      const winner = input.ifNotExists && taken ? await findExisting() : null;
      if (winner) return presentExisting(winner);
      throw error;
    }
    const account = presentAccount(user);
    return {
      json: { user: account, created: true },
      quiet: account._id,
      text: () => `Created user ${user.email} (${account._id}).`,
    };
  },
});

async function invite(
  app: App,
  project: Project,
  {
    email,
    roles,
    redirect = project.signIn?.redirects?.[0],
  }: { email: string; roles: string[]; redirect?: string | undefined },
): Promise<Result> {
  if (redirect === undefined) {
    throw new UsageError(`No page to link to: bsvc project update ${project.name} --redirect <url>.`);
  }
  const json = presentInvite(await sendInvite(app, project, { email, redirect, roles }));
  return { json, quiet: json.id, text: () => `Invited ${json.email} until ${json.expiresAt}.` };
}

function presentExisting(user: User): Result {
  const account = presentAccount(user);
  return {
    json: { user: account, created: false },
    quiet: account._id,
    text: () => presentFound(`User ${user.email} (${account._id})`),
  };
}

const DEFAULT_LIMIT = 50;

const listAll = defineProjectCommand({
  details:
    'Newest first. With a user it shows this one and where they are signed in. --json shows every field, never passwords.',
  examples: [
    'bsvc user list --project shop',
    'bsvc user list --project shop --email ann --limit 5 --json',
    'bsvc user list --project shop --search lovelace',
    'bsvc user list ann@example.com --project shop',
  ],
  parameters: {
    user: optionalArgument('user', 'id or e-mail address of a user'),
    email: option('--email <prefix>', 'only addresses that start with this'),
    q: option('--search <text>', 'only users with this id, or with this text in a field'),
    limit: option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`, wholeWithin(1, 999_999)),
    skip: option('--skip <n>', 'how many to skip', wholeWithin(0, 999_999)),
  },
  async run(context, { app, project, user: named, email, q, limit = DEFAULT_LIMIT, skip }) {
    if (named !== undefined) return presentUser(app, project, await requireUser(app, project._id, named));
    const { users, total } = await listUsers(app, project, { email, q, limit, skip });
    const accounts = users.map(presentAccount);
    context.out.note(`${accounts.length} of ${total} users`);
    return {
      json: accounts,
      quiet: accounts.map(({ _id }) => _id),
      text: (view) =>
        users.length === 0
          ? 'No users.'
          : view.table(
              ['id', 'e-mail', 'verified', 'state', 'created'],
              users.map((user, index) => [
                accounts[index]!._id,
                user.email ?? 'anonymous',
                user.emailVerified ? 'yes' : 'no',
                accounts[index]!.disabled ? 'disabled' : 'active',
                user.createdAt,
              ]),
            ),
    };
  },
});

async function presentUser(app: App, project: Project, user: User): Promise<Result> {
  const account = presentAccount(user);
  const roles = await listRoles(app, project, user);
  const identities = (await listIdentities(app, project, user)).map(presentIdentity);
  const passkeys = (await listPasskeys(app, project, user)).length;
  const sessions = (await listSessions(app, project, user)).map(presentSession);
  const { since = null, resetAt = null } = account.mfa ?? {};
  return {
    json: { ...account, roles, identities, passkeys, sessions },
    quiet: account._id,
    text: (view) =>
      [
        view.table(
          ['property', 'value'],
          [
            ['id', account._id],
            ['e-mail', user.email ?? 'anonymous'],
            ['verified', user.emailVerified ? 'yes' : 'no'],
            ['state', account.disabled ? 'disabled' : 'active'],
            ['roles', roles.join(', ') || 'none'],
            ['MFA', since === null ? 'off' : `since ${since}`],
            ['MFA reset', resetAt === null ? 'none' : `at ${resetAt}`],
            ['passkeys', passkeys],
            ['identities', identities.map(({ provider }) => provider).join(', ') || 'none'],
            ['created', user.createdAt],
          ],
        ),
        sessions.length === 0
          ? 'No active sessions.'
          : view.table(
              ['session', 'used', 'ends', 'IP', 'client'],
              sessions.map(({ id, usedAt, expiresAt, ip, userAgent }) => [id, usedAt, expiresAt, ip, userAgent]),
            ),
      ].join('\n\n'),
  };
}

const update = defineUserCommand({
  details: [
    'Users read their roles as "roles" of their profile and cannot set them. Access rules may ask for them.',
    '--disable and a new password end all sessions; access tokens are rejected within a second. After --enable the user signs in again.',
    '--reset-mfa is for a user who lost both second factor and recovery codes. It removes passkeys too, after the delay of the project (project update --mfa-reset-delay). The user is notified by email, and signing in with a factor cancels it.',
  ].join('\n'),
  examples: [
    'bsvc user update ann@example.com --project shop --add-role editor --remove-role trainee',
    'bsvc user update ann@example.com --project shop --disable',
    'bsvc user update ann@example.com --project shop --password-stdin < password.txt',
    'bsvc user update ann@example.com --project shop --end-sessions all',
    'bsvc user update ann@example.com --project shop --reset-mfa',
  ],
  audited: true,
  parameters: {
    disable: flag('--disable', 'disable the account and end its sessions'),
    enable: flag('--enable', 'enable a disabled account'),
    replacePassword: flag('--replace-password', 'set a new password; asks for it'),
    password: secret('password', 'the new password'),
    endSessions: option('--end-sessions <id|all>', 'end this session, or all'),
    add: list('--add-role <role>', 'add a role (repeatable)'),
    remove: list('--remove-role <role>', 'remove a role (repeatable)'),
    none: flag('--no-roles', 'remove all roles first'),
    resetMfa: flag('--reset-mfa', 'remove MFA and passkeys from the account'),
  },
  async run(context, { app, project, user, disable, enable, password: source, endSessions, ...input }) {
    const { add, remove, none, resetMfa } = input;
    const both = add.find((role) => remove.includes(role));
    if (both !== undefined) throw new UsageError(`"${both}" is to be added and removed.`);
    if (disable && enable) throw new UsageError('--disable and --enable exclude each other.');
    const changesRoles = none || add.length + remove.length > 0;
    const setsPassword = input.replacePassword || source.stdin || source.env !== undefined;
    if (!changesRoles && !disable && !enable && !setsPassword && endSessions === undefined && !resetMfa) {
      throw new UsageError(
        'Nothing to change: give --disable, --enable, --replace-password, --end-sessions, --add-role, --remove-role, --no-roles or --reset-mfa.',
      );
    }
    const password = setsPassword ? await readNewPassword(context, source, 'New password') : null;
    // Before anything is changed.
    if (password !== null) requireNewPassword(password);
    if (endSessions !== undefined) {
      context.out.note(`Ended: ${countOf(await endSession(app, project, user, endSessions), 'session')}.`);
    }
    let changed = user;
    if (changesRoles) {
      changed = await changeRoles(app, project, user, (present) => [
        ...new Set([...(none ? [] : present.filter((role) => !remove.includes(role))), ...add]),
      ]);
    }
    if (password !== null) await setPassword(app, project, user, password);
    if (disable) changed = await disableUser(app, project, user);
    if (enable) changed = await enableUser(app, project, user);
    if (resetMfa) changed = await requestReset(app, project, user);
    const ends = disable ? 'is disabled' : password !== null ? 'has a new password' : null;
    return presentUserResult(changed, ends === null ? 'is changed.' : `${ends}; all sessions have ended.`);
  },
});

/** Where data of a person can be after it was erased, for the person who answers for it. */
const REMAINS = [
  'backups made until now',
  'deliveries to webhooks and the log of changes, until they are removed (bsvc doctor, line "kept")',
  'the audit log, which names the user as they were named here',
  'what others wrote about them, and mails that they were sent',
];

/** What becomes of documents that refer to the user. */
const FATES = {
  none: 'stays: refers to the user',
  restrict: 'keeps the account: change it, or name it with --also',
  unset: 'stays without the reference',
  trash: 'goes to the trash',
  remove: 'is deleted',
} as const;

const remove = defineUserCommand({
  details: [
    'Documents of the user stay, except where a field says otherwise (onDelete). To only close the account use "bsvc user update --disable".',
    '--erase is for a person’s request to be forgotten. It permanently deletes the documents that the user owns (by the owner field of the collection, or a stamp), also in the trash, the files they uploaded and the logs of mails to them only.',
    'Documents that refer to the user (Ref(users)) are counted and stay, or go as the onDelete of their field says; --also names those that are the user’s. If it is interrupted, run it again.',
  ].join('\n'),
  examples: [
    'bsvc user delete ann@example.com --project shop',
    'bsvc user delete ann@example.com --project shop --yes',
    'bsvc user delete ann@example.com --erase --project shop --dry-run',
    'bsvc user delete ann@example.com --erase --project shop --also comments.author',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    erase: flag('--erase', 'delete all data of the user, not only the account'),
    also: list('--also <collection.field>', 'with --erase: documents in which this field has the user (repeatable)'),
    dryRun: flag('--dry-run', 'with --erase: only report what there is'),
  },
  async run(context, { app, project, user, erase, also, dryRun }) {
    const name = nameOf(user);
    if (!erase) {
      if (also.length > 0 || dryRun) throw new UsageError('--also and --dry-run go with --erase.');
      await context.confirm({ what: `Deletes the account ${name}.`, name });
      await deleteUser(app, project, user);
      return presentUserResult(user, 'is deleted.');
    }
    if (!dryRun) await context.confirm({ what: `Permanently deletes all data of ${name}.`, name });
    const { removed, mentioned } = await erasePerson(app, project, user, { also, dryRun, stop: context.stop });
    const id = user._id.toHexString();
    return {
      json: { user: id, dryRun, removed, mentioned, remains: REMAINS },
      quiet: id,
      text: (view) => {
        const rows = [
          ...removed.map(({ kind, place, count }) => [kind, place, count, dryRun ? 'would be deleted' : 'deleted']),
          ...mentioned.map(({ kind, place, count, onDelete }) => [kind, place, count, FATES[onDelete ?? 'none']]),
          ['account', name, 1, dryRun ? 'would be deleted' : 'deleted'],
        ];
        const lines = [view.table(['what', 'where', 'number', 'state'], rows)];
        if (!dryRun) lines.push('Their name can still be in:', ...REMAINS.map((text) => `  ${text}`));
        return lines.join('\n');
      },
    };
  },
});

export default { list: listAll, create, update, delete: remove };
