import type { App } from '../../src/app.js';
import { parseDuration } from '../../src/config/setting-readers.js';
import { AppError, invalid } from '../../src/errors.js';
import { OPERATOR_ROLES, type Operator } from '../../src/features/access/operator.js';
import {
  addOperator,
  findOperatorByEmail,
  requireOperatorEmail,
  listOperators,
  presentOperator,
  removeOperator,
  requireOperatorNamed,
} from '../../src/features/operators/manage-operators.js';
import {
  openOperatorSession,
  endOperatorSession,
  endOperatorSessions,
  listOperatorSessions,
  presentOperatorSession,
  setOperatorPassword,
} from '../../src/features/operators/operator-sessions.js';
import { requireProject } from '../../src/features/projects/project-store.js';
import { DAY_MS } from '../../src/platform/time/clock.js';
import { pickOne } from '../ask/choose.js';
import {
  argument,
  choice,
  defineCommand,
  defineCommandOn,
  flag,
  list,
  option,
  secret,
  type SecretSource,
} from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { readNewPassword } from '../shell/read-secret.js';
import { UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';
import { presentFound, presentList } from '../view/present.js';

/** All operators; 400 NO_OPERATOR when there is none. */
export async function requireSomeOperators(app: App): Promise<Operator[]> {
  const operators = await listOperators(app);
  if (operators.length > 0) return operators;
  throw invalid('NO_OPERATOR', 'There is no operator yet. Add one with "bsvc operator add --email <address>".');
}

const operatorArgument = argument('operator', 'e-mail address or id of the operator', {
  ask: (context) =>
    pickOne(context, 'The argument <operator> is missing', 'Which operator?', async (app) =>
      (await requireSomeOperators(app)).map(({ _id, email, role }) => ({
        name: email,
        value: _id.toHexString(),
        description: role,
      })),
    ),
});

/** `defineCommand` for work on one operator, picked from a list at a terminal: with `app` and `operator`. */
const defineOperatorCommand = defineCommandOn({ operator: operatorArgument }, async (context, { operator }) => {
  const app = await context.app();
  return { app, operator: await requireOperatorNamed(app, operator) };
});

/** Which projects an operator sees. */
function presentSeen({ projects }: ReturnType<typeof presentOperator>): string {
  return projects ? `only ${projects.join(', ')}` : 'all projects';
}

const add = defineCommand({
  details: [
    'Operators sign in at POST /api/admin/login and use /api/projects/… with the token they get.',
    '--replace-password sets a new password for an existing operator and ends their sessions and tokens within a second.',
    'An owner can change everything, a viewer only reads. Without --project, the operator has access to all projects and can create new ones.',
  ].join('\n'),
  examples: [
    'bsvc operator add --email ann@example.com',
    'bsvc operator add --email bob@example.com --role viewer --project shop --password-stdin < password.txt',
    'bsvc operator add --email ann@example.com --replace-password',
  ],
  audited: true,
  parameters: {
    email: option('--email <address>', 'e-mail address to sign in with'),
    role: choice('--role <role>', 'role of the operator (default: owner)', OPERATOR_ROLES),
    projects: list('--project <id|name>', 'only this project (repeatable)'),
    password: secret('password', 'the password, 6 to 72 bytes'),
    ifNotExists: flag('--if-not-exists', 'do nothing if one with that address exists'),
    replacePassword: flag('--replace-password', 'change the password of the one with that address'),
  },
  async run(context, input) {
    const given = input.email ?? (await context.ask.text('E-mail address:', 'No address given: add --email <address>'));
    const email = requireOperatorEmail(given);
    if (input.replacePassword && (input.role !== undefined || input.projects.length > 0 || input.ifNotExists)) {
      throw new UsageError('--replace-password takes the address and the password alone.');
    }
    const app = await context.app();
    if (input.replacePassword) return replacePassword(context, app, email, input.password);
    const findExisting = () => (input.ifNotExists ? findOperatorByEmail(app, email) : null);
    const existing = await findExisting();
    if (existing) return presentExisting(existing, input.role);
    const projects = [];
    for (const named of input.projects) projects.push(await requireProject(app, named));
    const password = await readNewPassword(context, input.password, 'Password');
    let operator: ReturnType<typeof presentOperator>;
    try {
      operator = presentOperator(
        await addOperator(app, {
          email,
          password,
          role: input.role ?? 'owner',
          projects: projects.length > 0 ? projects : null,
        }),
      );
    } catch (error) {
      // Another process may have added it in the meantime.
      const taken = error instanceof AppError && error.code === 'OPERATOR_EXISTS';
      const winner = taken ? await findExisting() : null;
      if (winner) return presentExisting(winner, input.role);
      throw error;
    }
    return {
      json: { operator, created: true },
      quiet: operator.id,
      text: () =>
        [
          `Added operator ${operator.email} (${operator.role}, ${presentSeen(operator)}).`,
          `It signs in at POST /api/admin/login; for scripts: bsvc operator token ${operator.email}`,
        ].join('\n'),
    };
  },
});

async function replacePassword(context: Context, app: App, email: string, source: SecretSource): Promise<Result> {
  const operator = await requireOperatorNamed(app, email);
  await setOperatorPassword(app, operator, await readNewPassword(context, source, 'New password'));
  const json = presentOperator(operator);
  return {
    json,
    quiet: json.id,
    text: () => `Operator ${json.email} has a new password; all sessions and tokens have ended.`,
  };
}

function presentExisting(operator: Operator, role: Operator['role'] | undefined): Result {
  const shown = presentOperator(operator);
  const unmet = role === undefined || role === shown.role ? [] : [`role: ${shown.role} -> ${role}`];
  return {
    json: { operator: shown, created: false, unmet },
    quiet: shown.id,
    text: () => presentFound(`Operator ${shown.email}`, unmet, 'To change it, remove it and add it again.'),
  };
}

const listAll = defineCommand({
  examples: ['bsvc operator list', 'bsvc operator list --json'],
  async run(context) {
    const operators = (await listOperators(await context.app())).map(presentOperator);
    return presentList(operators, {
      name: ({ id }) => id,
      empty: 'No operators yet. Add one with: bsvc operator add --email <address>',
      head: ['id', 'e-mail', 'role', 'sees', 'added'],
      row: (operator) => [operator.id, operator.email, operator.role, presentSeen(operator), operator.createdAt],
    });
  },
});

const DEFAULT_TTL = '12h';
const MAX_TTL_MS = 366 * DAY_MS;

const token = defineOperatorCommand({
  details: [
    `For scripts: a bearer token without a password. It expires after --ttl (default ${DEFAULT_TTL}), or when the operator is removed.`,
    '--list shows sessions and tokens. --revoke ends one, or all of them and all sign-in links, within a second.',
  ].join('\n'),
  examples: [
    'bsvc operator token ann@example.com --quiet',
    'TOKEN=$(bsvc operator token ann@example.com --ttl 30d --quiet)',
    'bsvc operator token ann@example.com --list',
    'bsvc operator token ann@example.com --revoke all',
  ],
  audited: ({ list }) => !list,
  parameters: {
    ttl: option('--ttl <duration>', `how long it works (default: ${DEFAULT_TTL})`, readTtl),
    list: flag('--list', 'list sessions and tokens'),
    revoke: option('--revoke <id|all>', 'end this session or token, or all'),
  },
  async run(context, { app, operator, ttl = parseDuration(DEFAULT_TTL), list, revoke }) {
    if (list || revoke !== undefined) return showSessions(context, app, operator, revoke);
    const { token, expiresAt } = await openOperatorSession(app, operator, ttl);
    return {
      json: { token, expiresAt: expiresAt.toISOString(), operator: operator._id.toHexString() },
      quiet: token,
      text: () =>
        [
          `Token of ${operator.email}, until ${expiresAt.toISOString()}:`,
          '',
          `  ${token}`,
          '',
          'It is shown this once. Try: curl -H "Authorization: Bearer <token>" <address of the server>/api/projects',
        ].join('\n'),
    };
  },
});

async function showSessions(
  context: Context,
  app: App,
  operator: Operator,
  revoke: string | undefined,
): Promise<Result> {
  if (revoke === 'all') {
    const ended = await endOperatorSessions(app, operator);
    context.out.note(`${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`);
  } else if (revoke !== undefined) {
    await endOperatorSession(app, operator, revoke);
    context.out.note('1 session has ended.');
  }
  const sessions = (await listOperatorSessions(app, operator)).map(presentOperatorSession);
  return presentList(sessions, {
    name: ({ id }) => id,
    empty: 'No active sessions.',
    head: ['id', 'used', 'ends', 'by', 'opened'],
    row: ({ id, usedAt, expiresAt, createdAt, console }) => [
      id,
      usedAt,
      expiresAt,
      console ? 'console' : 'token',
      createdAt,
    ],
  });
}

function readTtl(text: string): number {
  const ms = parseDuration(text);
  if (ms < 1000 || ms > MAX_TTL_MS) throw new Error('must be between 1s and 366d');
  return ms;
}

const remove = defineOperatorCommand({
  details: 'Sessions and tokens end within a second. Projects do not change.',
  examples: ['bsvc operator remove ann@example.com', 'bsvc operator remove ann@example.com --yes'],
  audited: true,
  destroys: ({ operator }) => ({ what: `Removes operator ${operator.email}.`, name: operator.email }),
  async run(_context, { app, operator }) {
    await removeOperator(app, operator);
    const shown = presentOperator(operator);
    return { json: shown, quiet: shown.id, text: () => `Removed operator ${shown.email}.` };
  },
});

export default { add, list: listAll, token, remove };
