import { quoteShell } from '../../src/exchange/shell-word.js';
import { parseBytes } from '../../src/config/setting-readers.js';
import { changeProject } from '../../src/features/declaration/plan-projects.js';
import type { StorageUsage } from '../../src/features/files/list-files.js';
import { deleteProject } from '../../src/features/management/delete-project.js';
import {
  measureUsage,
  presentProjectDetails,
  type DatabaseUsage,
  type Usage,
} from '../../src/features/management/project-details.js';
import { BYTE_LIMITS, OVERRIDABLE_LIMITS } from '../../src/features/plans/plan-limits.js';
import { describeProject } from '../../src/features/project-types/described-project.js';
import { writeBrief } from '../../src/features/project-types/project-brief.js';
import { createProject } from '../../src/features/projects/create-project.js';
import {
  listProjects,
  presentProject,
  findProject,
  requireProject,
} from '../../src/features/projects/project-store.js';
import { PLAN_NAMES } from '../../src/features/projects/project.js';
import { CODE_LOGINS, MFA_MODES, type SignInSettings } from '../../src/features/projects/sign-in-settings.js';
import { TOKEN_ALGORITHMS } from '../../src/platform/secrets/jwt.js';
import { doomedProjectArgument, projectArgument } from '../ask/choose.js';
import { argument, choice, defineCommand, defineCommandOn, flag, list, option } from '../shell/command.js';
import { findServiceAddress } from '../shell/service-address.js';
import { UsageError } from '../view/exit.js';
import type { TextStyle } from '../view/output.js';
import { countOf, presentBytes, presentFound, presentList } from '../view/present.js';
import { declareProject } from '../../src/features/declaration/declare-project.js';
import { PROJECTS_FORMAT, type ProjectDeclaration } from '../../src/features/declaration/project-declaration.js';
import { isOwnHandler } from '../../src/features/webhooks/add-webhook.js';
import { listWebhooks } from '../../src/features/webhooks/add-webhook.js';
import type { Field } from '../../src/features/collections/fields/field.js';
import { presentFieldSpec } from '../ask/field-spec.js';
import { replaceFile, resolveOutput } from '../formats/output-file.js';

/** One project as a table of its properties. */
function presentProjectTable(view: TextStyle, project: ReturnType<typeof presentProjectDetails>): string {
  const limits = Object.entries(project.limits).map(([name, value]) => `${name}=${value}`);
  const { passkeys } = project.signIn;
  const { publishableUploads, bucket } = project.storage;
  return view.table(
    ['property', 'value'],
    [
      ['id', project.id],
      ['name', project.name],
      ['plan', project.plan],
      ['allowed domains', project.allowedDomains.join(', ')],
      ['own limits', limits.join(', ')],
      ['uploads', publishableUploads ? 'publishable keys may upload' : 'secret keys alone'],
      ['bucket', bucket],
      ['mail from', project.providerFromEmail],
      ['sign-in by code', project.signIn.codeLogin],
      ['second factors', project.signIn.mfa],
      ['reset of factors', `after ${project.signIn.mfaResetDelay}`],
      ['passkeys', passkeys ? `${passkeys.rpId}: ${passkeys.origins.join(', ')}` : 'off'],
      ['anonymous users', project.signIn.anonymous ? `on, kept ${project.signIn.anonymousKeep}` : 'off'],
      ['access tokens', project.signIn.tokens],
      ['addresses in mails', project.signIn.redirects.join(', ')],
      ['created', project.createdAt],
      ['updated', project.updatedAt],
    ],
  );
}

const create = defineCommand({
  details: 'The keys are shown only once: save them. "bsvc key create" creates more.',
  examples: ['bsvc project create shop', 'bsvc project create shop --plan pro --if-not-exists --json'],
  audited: true,
  parameters: {
    name: argument('name', 'name of the project'),
    plan: choice('--plan <plan>', 'limits to apply', PLAN_NAMES),
    ifNotExists: flag('--if-not-exists', 'do nothing if one of that name exists'),
  },
  async run(context, { name, plan, ifNotExists }) {
    const { project, keys, created } = await createProject(await context.app(), { name, plan, ifNotExists });
    const shown = presentProject(project);
    const unmet = plan === undefined || plan === project.plan ? [] : [`plan: ${project.plan} -> ${plan}`];
    return {
      json: { project: shown, keys, created, ...(!created && { unmet }) },
      quiet: shown.id,
      text: ({ paint }) =>
        keys
          ? [
              `Created project ${paint.bold(shown.name)} (${shown.id}).`,
              '',
              `  publishable key  ${keys.publishable}`,
              `  secret key       ${keys.secret}`,
              '',
              'The keys are shown this once. The publishable one may be in a browser, the secret one stays on servers.',
              `Next: bsvc collection add posts --project ${quoteShell(shown.name)} --field title:String!`,
            ].join('\n')
          : presentFound(
              `Project ${paint.bold(shown.name)} (${shown.id})`,
              unmet,
              `Change it with "bsvc project update ${quoteShell(shown.name)} --plan ${plan}".`,
            ),
    };
  },
});

const listAll = defineCommand({
  examples: ['bsvc project list', 'bsvc project list --json'],
  async run(context) {
    const projects = (await listProjects(await context.app())).map(presentProject);
    return presentList(projects, {
      name: ({ id }) => id,
      empty: 'No projects yet. Create one with: bsvc project create <name>',
      head: ['id', 'name', 'plan', 'created'],
      row: ({ id, name, plan, createdAt }) => [id, name, plan, createdAt],
    });
  },
});

const show = defineCommand({
  details: 'Shows its settings, its usage and the limits of its plan.',
  examples: ['bsvc project show shop', 'bsvc project show shop --json'],
  parameters: { project: projectArgument },
  async run(context, input) {
    const app = await context.app();
    const found = await requireProject(app, input.project);
    const project = presentProjectDetails(found);
    const usage = await measureUsage(app, found);
    return {
      json: { ...project, usage },
      quiet: project.id,
      text: (view) => `${presentProjectTable(view, project)}\n\n${presentUsage(view, usage)}`,
    };
  },
});

const update = defineCommand({
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
    codeLogin: choice(
      '--code-login <who>',
      'who may sign in with an email code: no one, existing users, anyone',
      CODE_LOGINS,
    ),
    redirects: list('--redirect <url>', 'URL of the application that emails may link to; "none" removes all'),
    mfa: choice('--mfa <mode>', 'whether users may, or must, set up MFA', MFA_MODES),
    mfaResetDelay: option('--mfa-reset-delay <time>', 'delay until a reset of a user’s MFA takes effect'),
    anonymous: choice('--anonymous <mode>', 'anonymous sign-up, without an address', ['on', 'off']),
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

const brief = defineCommand({
  details: 'At most 4 kB of Markdown for a coding agent; a server serves the same at /api/schemas/brief.md.',
  examples: ['bsvc project brief shop'],
  parameters: { project: projectArgument },
  async run(context, input) {
    const app = await context.app();
    const project = await describeProject(app, await requireProject(app, input.project), { isPublic: false });
    const text = writeBrief(project, await findServiceAddress(app));
    return { json: { brief: text }, quiet: text.trimEnd(), text: () => text.trimEnd() };
  },
});

const defineNamedProjectCommand = defineCommandOn({ project: doomedProjectArgument }, async (context, { project }) => {
  const app = await context.app();
  // A project half deleted is no longer found, but deleting it again finishes the work.
  return { app, project, name: (await findProject(app, project))?.name ?? project };
});

const remove = defineNamedProjectCommand({
  details: 'Its keys stop working immediately. If it is interrupted, run it again to continue.',
  examples: ['bsvc project delete shop', 'bsvc project delete shop --yes'],
  audited: true,
  destroys: ({ name }) => ({ what: `Deletes project ${name} with its collections, documents and keys.`, name }),
  async run(_context, { app, project }) {
    const deleted = presentProject(await deleteProject(app, project));
    return { json: deleted, quiet: deleted.id, text: () => `Deleted project ${deleted.name} and everything in it.` };
  },
});

/** What a project holds beside what its plan grants. */
function presentUsage(view: TextStyle, usage: Usage): string {
  return [
    view.table(
      ['collection', 'documents', 'in trash', 'size', 'log of changes'],
      usage.collections.map(({ name, documents, trashed, bytes, log }) => [
        name,
        documents,
        trashed,
        presentBytes(bytes),
        log ? presentBytes(log.bytes) : '',
      ]),
    ),
    [
      presentDatabase(usage.database),
      presentStorage(usage.storage),
      `${usage.mail.used} of ${usage.mail.limit ?? 'unlimited'} mails used this month`,
      `${usage.webhooks} of ${usage.limits.webhooks ?? 'unlimited'} webhooks used`,
    ].join('\n'),
    view.table(
      ['limit', `granted (plan ${usage.plan})`],
      Object.entries(usage.limits).map(([name, limit]) => [name, presentLimit(name, limit)]),
    ),
  ].join('\n\n');
}

function presentDatabase({ used, kept, limit }: DatabaseUsage): string {
  const of = presentLimit('database', limit);
  return `${presentBytes(used)} of ${of} used in the database, ${presentBytes(kept)} of it sessions, codes, mails and the like`;
}

function presentStorage({ files, bytes, limit, provider }: StorageUsage): string {
  const place = provider === 'external' ? ' (new files go to the project’s own bucket)' : '';
  return `${countOf(files, 'file')}, ${presentBytes(bytes)} of ${presentLimit('storage', limit)} used${place}`;
}

function presentLimit(name: string, limit: number | null): string {
  if (limit === null) return 'unlimited';
  return name === 'storage' || name === 'database' ? presentBytes(limit) : String(limit);
}

const exportFile = defineCommand({
  details: [
    'Writes a file for "bsvc apply -f": all settings of the project, its collections, users, sign-in providers, mail templates, webhooks and hooks.',
    'Applying it to the same project changes nothing. It contains no keys or documents, and environment variables instead of secrets.',
    'Without --out, writes to standard output.',
  ].join('\n'),
  examples: ['bsvc project export shop --out bsvc.yaml', 'bsvc project export shop > bsvc.yaml'],
  parameters: { project: projectArgument, out: option('--out <file>', 'file to write') },
  async run(context, { project: named, out }) {
    const path = out === undefined ? null : await resolveOutput(context, out);
    const app = await context.app();
    const project = await requireProject(app, named);
    const secrets = new Map<string, string>();
    const declared = await declareProject(app, project, secrets);
    const left =
      (await listWebhooks(app, project)).filter(({ url }) => !isOwnHandler(url)).length -
      (declared.webhooks?.length ?? 0);
    if (left > 0) {
      const words = `${countOf(left, 'webhook')} ${left === 1 ? 'is' : 'are'} not in the file`;
      context.out.warn(`Warning: ${words}: of those with one address it has the oldest.`);
    }
    if (secrets.size > 0) {
      context.out.note(`Secrets are not in the file. Where it is applied, set ${[...secrets.keys()].join(', ')}.`);
    }
    const file = { format: PROJECTS_FORMAT, projects: [withSpecs(declared)] };
    const { stringify } = await import('yaml');
    const text = stringify(file, { lineWidth: 0 });
    if (path === null || out === undefined) return { json: file, quiet: text.trimEnd(), text: () => text.trimEnd() };
    // It shows how a project is guarded: its owner's alone, whichever mode the file had.
    await replaceFile(path, text);
    return { json: { file: out }, quiet: out, text: () => `Wrote ${declared.name} to ${out}.` };
  },
});

/** Fields as specs, as people write them, wherever a spec can say all of a field. */
function withSpecs(declared: ProjectDeclaration): unknown {
  const specs = (fields: readonly Field[] = []): unknown[] => fields.map((field) => presentFieldSpec(field) ?? field);
  return {
    ...declared,
    users: { ...declared.users, fields: specs(declared.users?.fields) },
    collections: declared.collections?.map((collection) => ({ ...collection, fields: specs(collection.fields) })),
  };
}

export default { create, list: listAll, show, update, brief, delete: remove, export: exportFile };
