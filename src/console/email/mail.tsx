import { useState } from 'preact/hooks';
import { call, prepare, addressOf, send } from '../api.js';
import { below, withQuery, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { invalidate, useLoad } from '../load.js';
import { say, ErrorNote, useAction, Dialog } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { Drawer, DrawerForm } from '../parts/drawer.js';
import { Field, Form, Tick, useForm, TextArea } from '../parts/form.js';
import { Pairs } from '../parts/page-head.js';
import { chosenOf, goTo, linkHere, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { Confirm } from '../parts/confirm.js';

type ProjectPath = Address<'/api/projects/{projectId}'>;
type MailLog = ApiSchemas['MailLog'];

const STATUSES = (['queued', 'sent', 'delivered', 'bounced', 'complained', 'failed'] as const).map(
  (each) => [each, each] as const,
);
const BAD = new Set(['bounced', 'complained', 'failed']);

export function Mail() {
  const { query } = place.value;
  const project = projectPath();
  const page = Number(query.get('page') ?? 1) || 1;
  const status = chosenOf('status', STATUSES) ?? '';
  const to = query.get('to') ?? '';
  const list = useLoad(withQuery(below(project, '/mail/logs'), { status, to, page: page > 1 ? page : null }));
  const { data: settings } = useLoad(project);
  return (
    <>
      <CrudScreen
        title="Email"
        label="Emails"
        count={list.data?.total}
        actions={
          <a class="button" href={linkHere({ edit: '1' })}>
            Provider and sender…
          </a>
        }
        filters={[
          { name: 'to', label: 'To' },
          { name: 'status', label: 'Status', choices: STATUSES },
        ]}
        list={list}
        names={['email', 'emails']}
        keyOf={({ id }) => id}
        empty="No emails yet."
        columns={[
          { name: 'To', show: (mail) => [mail.to].flat().join(', ') },
          { name: 'Subject', show: ({ id, subject }) => opens(id, subject) },
          { name: 'Status', show: (mail) => <span class={BAD.has(mail.status) ? 'bad' : ''}>{fateOf(mail)}</span> },
          { name: 'Why', show: ({ reason }) => reason ?? '' },
          { name: 'At', show: ({ sentAt }) => moment(sentAt) },
        ]}
        view={(mail, close) => <MailDrawer key={mail.id} project={project} mail={mail} onClose={close} />}
      >
        {settings && (
          <p class="muted">
            {settings.providerApiKey
              ? `Sent by the project’s own Resend key (${settings.providerApiKey})`
              : 'Sent by the server’s provider'}
            {settings.providerFromEmail && `, from ${settings.providerFromEmail}`}.
          </p>
        )}
      </CrudScreen>
      <Templates base={below(project, '/mail/templates')} />
      {mayChange.value && <TestMail path={below(project, '/mail/test')} />}
      {settings && query.get('edit') && mayChange.value && (
        <MailSettings path={project} stored={settings} onClose={() => goTo(linkHere({ edit: null }))} />
      )}
    </>
  );
}

function TestMail({ path }: { path: Address<'/api/projects/{projectId}/mail/test'> }) {
  const [to, setTo] = useState('');
  const [busy, send, error] = useAction(async () => {
    await call('POST', path, { body: { to } });
    say(`The test email to ${to} is queued`);
    invalidate(path);
  });
  return (
    <>
      <h2>Test email</h2>
      <Form class="row" onSubmit={() => void send()}>
        <Field label="To" type="email" required value={to} onChange={setTo} />
        <button disabled={busy}>Send</button>
      </Form>
      <ErrorNote error={error} />
      <Commands of={[prepare('POST', path, { body: { to: to || 'me@example.com' } })]} />
    </>
  );
}

/** Its status, but for mails that the outbox has taken: it names them by our own id, and sends none. */
const fateOf = ({ id, providerEmailId, status }: MailLog): string =>
  status === 'sent' && providerEmailId === id ? 'kept' : status;

/** One mail: what became of it, and its text where it is still kept. HTML is shown as text. */
function MailDrawer({ project, mail, onClose }: { project: ProjectPath; mail: MailLog; onClose: () => void }) {
  const path = below(project, '/mail/logs/{id}/text', { id: mail.id });
  const [kept, setKept] = useState<ApiSchemas['MailText'] | null>(null);
  const [busy, read, error] = useAction(async () => setKept(await call('POST', path)));
  return (
    <Drawer title={mail.subject} onClose={onClose}>
      <Pairs
        of={{
          From: kept?.from,
          To: [mail.to].flat().join(', '),
          Status: fateOf(mail),
          At: moment(mail.sentAt),
          Why: mail.reason || null,
        }}
      />
      <ErrorNote error={error} />
      {mayChange.value && !kept && (
        <>
          <p class="muted">Emails can contain sign-in codes. The audit log records that you read one.</p>
          <p class="row">
            <button disabled={busy} onClick={() => void read()}>
              Read the email
            </button>
          </p>
        </>
      )}
      {kept && kept.text !== null && <pre tabIndex={0}>{kept.text}</pre>}
      {kept && kept.html !== null && (
        <>
          <h3>HTML</h3>
          <pre tabIndex={0}>{kept.html}</pre>
        </>
      )}
      {mayChange.value && <Commands of={[prepare('POST', path)]} />}
    </Drawer>
  );
}

/** The project's own provider and sender: what is left empty stays as it is, a box takes it away. */
function MailSettings({
  path,
  stored,
  onClose,
}: {
  path: ProjectPath;
  stored: ApiSchemas['ProjectDetails'];
  onClose: () => void;
}) {
  const form = useForm({ sender: stored.providerFromEmail ?? '', key: '', secret: '', isRemoved: false });
  const { isRemoved } = form.values;
  const [sender, key, secret] = [form.values.sender.trim(), form.values.key.trim(), form.values.secret.trim()];
  const body: ApiSchemas['ProjectChanges'] = {
    ...(sender !== (stored.providerFromEmail ?? '') && { providerFromEmail: sender || null }),
    ...(isRemoved
      ? { providerApiKey: null, providerWebhookSecret: null }
      : { ...(key !== '' && { providerApiKey: key }), ...(secret !== '' && { providerWebhookSecret: secret }) }),
  };
  return (
    <DrawerForm
      title="Email of the project"
      requests={[prepare('PATCH', path, { query: { verify: (key !== '' && !isRemoved) || null }, body })]}
      done="The email settings are changed"
      isDirty={Object.keys(body).length > 0}
      onClose={onClose}
    >
      <Field
        label="Sender"
        hint="An address, or Name <address>. Leave empty for the server’s."
        {...form.at('sender')}
      />
      <Field
        label="Own key at Resend"
        type="password"
        hint={
          stored.providerApiKey
            ? `A key is stored (${stored.providerApiKey}). A new one is tested before it replaces it.`
            : 'Starts with re_. It is tested before it is stored. Without a key, the server’s provider sends the emails.'
        }
        {...form.at('key')}
      />
      <Field
        label="Secret of its events"
        type="password"
        hint={stored.providerWebhookSecret ? 'A secret is stored.' : 'Starts with whsec_. Needed to receive bounces.'}
        {...form.at('secret')}
      />
      {stored.providerApiKey && <Tick label="Remove the project’s own provider" {...form.at('isRemoved')} />}
    </DrawerForm>
  );
}

type Base = Address<'/api/projects/{projectId}/mail/templates'>;
type Template = ApiSchemas['UsedTemplate'];

/** `name` of the address: no template may be called so. */
const NEW = ':new';

/** Templates of a project's mails, and the service's own that they override. */
function Templates({ base }: { base: Base }) {
  const open = place.value.query.get('template');
  const close = (): void => goTo(linkHere({ template: null }));
  return (
    <>
      <CrudScreen
        title="Templates"
        isSection
        list={useLoad(base)}
        keyOf={({ name, scope }) => `${scope} ${name}`}
        empty="No templates."
        columns={[
          { name: 'Name', show: ({ name }) => opens(name, name, 'template') },
          { name: 'Of', show: ({ scope }) => (scope === 'system' ? 'the service' : 'the project') },
          { name: 'Subject', show: ({ subject }) => subject },
        ]}
      />
      {mayChange.value && (
        <p class="row">
          <a href={linkHere({ template: NEW })}>New template…</a>
        </p>
      )}
      {open === NEW && mayChange.value && (
        <Dialog title="New template" onClose={close} wide>
          <Editor base={base} stored={null} onDone={close} />
        </Dialog>
      )}
      {open !== null && open !== NEW && <OneTemplate key={open} base={base} name={open} onClose={close} />}
    </>
  );
}

function OneTemplate({ base, name, onClose }: { base: Base; name: string; onClose: () => void }) {
  const path = below(base, '/{name}', { name });
  const { data, error, reload } = useLoad(path);
  return (
    <Dialog title={`Template ${name}`} onClose={onClose} wide>
      <ErrorNote error={error} onRetry={reload} />
      {data && (mayChange.value ? <Editor base={base} stored={data} onDone={onClose} /> : <Shown stored={data} />)}
      {data?.html !== undefined && (
        <p>
          <a href={addressOf(below(path, '/preview'))} target="_blank" rel="noopener noreferrer">
            Show HTML source
          </a>
        </p>
      )}
    </Dialog>
  );
}

function Shown({ stored: { subject, html, text } }: { stored: Template }) {
  return (
    <>
      <p>
        <b>{subject}</b>
      </p>
      {text !== undefined && <pre tabIndex={0}>{text}</pre>}
      {html !== undefined && <pre tabIndex={0}>{html}</pre>}
    </>
  );
}

function Editor({ base, stored, onDone }: { base: Base; stored: Template | null; onDone: () => void }) {
  const form = useForm({
    name: stored?.name ?? '',
    subject: stored?.subject ?? '',
    html: stored?.html ?? '',
    text: stored?.text ?? '',
  });
  const { name, subject, html, text } = form.values;
  const [removing, setRemoving] = useState(false);
  const path = below(base, '/{name}', { name: name.trim() });
  const storing = prepare('PUT', path, {
    body: { subject, ...(html !== '' && { html }), ...(text !== '' && { text }) },
  });
  const removal = prepare('DELETE', path);
  const [busy, save, refused] = useAction(async () => {
    await send(storing);
    say('Template stored');
    onDone();
    invalidate(path);
  });
  const isOwn = stored?.scope === 'project';
  return (
    <>
      {stored?.scope === 'system' && <p class="muted">The service’s own: stored, it is the project’s instead.</p>}
      <Form onSubmit={() => void save()}>
        {!stored && <Field label="Name" required {...form.at('name')} />}
        <Field label="Subject" required {...form.at('subject')} />
        <TextArea label="Text" {...form.at('text')} />
        <TextArea label="HTML" {...form.at('html')} />
        <p class="muted">
          <code>{'{{name}}'}</code> is replaced by a value of the email.
        </p>
        <ErrorNote error={refused} />
        <p class="row">
          <button class="primary" disabled={busy}>
            Store
          </button>
          {isOwn && (
            <button type="button" class="danger" onClick={() => setRemoving(true)}>
              Remove…
            </button>
          )}
        </p>
      </Form>
      <Commands of={[storing, ...(isOwn ? [removal] : [])]} />
      {removing && (
        <Confirm
          title="Remove the template"
          text="This permanently deletes the template. A built-in template of the same name is used again."
          name={name}
          request={removal}
          done="The template is removed"
          onClose={() => setRemoving(false)}
          onDone={onDone}
        />
      )}
    </>
  );
}
