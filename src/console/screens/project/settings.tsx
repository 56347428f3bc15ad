import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { pathTo } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment, number } from '../../format.js';
import { useLoad } from '../../load.js';
import { Copy, say, Trouble } from '../../parts/basics.js';
import { Commands, projectWord } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { PageHead } from '../../parts/page-head.js';
import { goTo, linkHere, place } from '../../routes.js';
import { loadProjects, mayChange, projects } from '../../session.js';
import { ProjectEditor } from './project-edit.js';
import { ProjectUsage } from './project-usage.js';

export function Settings() {
  const { parts, query } = place.value;
  const id = parts[1] ?? '';
  const base = pathTo('/api/projects/{projectId}', { projectId: id });
  const { data, error, reload } = useLoad(base);
  const [isDeleting, setDeleting] = useState(false);
  const close = (): void => goTo(linkHere({ edit: null }));
  return (
    <>
      <PageHead title="Project">
        {data && mayChange.value && (
          <>
            <button class="danger" onClick={() => setDeleting(true)}>
              Delete the project…
            </button>
            <a class="button primary" href={linkHere({ edit: '1' })}>
              Edit the project…
            </a>
          </>
        )}
      </PageHead>
      <Trouble error={error} onRetry={reload} />
      {data && <Pairs details={data} />}
      <Commands
        name="Show"
        cli={`bsvc project show ${projectWord()}`}
        path={base}
        more={
          mayChange.value
            ? [{ name: 'Delete', cli: `bsvc project delete ${projectWord()}`, method: 'DELETE', path: base }]
            : []
        }
      />
      <ProjectUsage base={base} />
      {data && query.get('edit') === '1' && mayChange.value && (
        <ProjectEditor
          path={base}
          stored={data}
          onClose={close}
          onSaved={() => {
            reload();
            void loadProjects();
            close();
          }}
        />
      )}
      {data && isDeleting && (
        <Confirm
          title="Delete the project"
          text="For good, with all its documents, users and files."
          name={data.name}
          asksPassword
          action="Delete the project"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call('DELETE', base);
            say('The project is deleted');
            projects.value = projects.value.filter((each) => each.id !== id);
            goTo('#/');
          }}
        />
      )}
    </>
  );
}

function Pairs({
  details: { name, id, plan, allowedDomains, limits, storage, createdAt },
}: {
  details: ApiSchemas['ProjectDetails'];
}) {
  const own = Object.entries(limits).map(([limit, value]) => `${limit} ${number(value)}`);
  return (
    <dl class="pairs">
      <dt>Name</dt>
      <dd>{name}</dd>
      <dt>Id</dt>
      <dd>
        <code>{id}</code> <Copy text={id} what="Id" />
      </dd>
      <dt>Plan</dt>
      <dd>{plan}</dd>
      <dt>Own limits</dt>
      <dd>{own.join(', ') || 'none'}</dd>
      <dt>Allowed domains</dt>
      <dd>{allowedDomains.join(', ') || 'none'}</dd>
      <dt>Uploads by apps</dt>
      <dd>{storage.publishableUploads ? 'publishable keys may upload' : 'secret keys alone'}</dd>
      <dt>Created</dt>
      <dd>{moment(createdAt)}</dd>
    </dl>
  );
}
