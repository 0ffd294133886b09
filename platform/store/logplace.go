package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proa-dev/proa/platform"
)

// LogPlace is where the lines of an app are: in the pods of its instances, and in the records up to a number.
type LogPlace struct {
	App, Cluster, Namespace string
	Pods                    []LogPod
	Last                    int64
}

// LogPod is an instance with a pod.
type LogPod struct {
	Process   string // its type
	Index     int
	Name, UID string
}

// LogPlace finds the lines of an app for somebody who may read them.
func (s *Store) LogPlace(ctx context.Context, who platform.Who, app string) (LogPlace, error) {
	if _, err := apps.find(ctx, s.pool, who, platform.Read, app); err != nil {
		return LogPlace{}, err
	}
	places, err := s.logPlaces(ctx, []string{app})
	if err != nil {
		return LogPlace{}, err
	}
	if place, there := places[app]; there {
		return place, nil
	}
	return LogPlace{}, platform.NotFound(apps.name) // it went while we looked
}

func (s *Store) logPlaces(ctx context.Context, guids []string) (map[string]LogPlace, error) {
	rows, err := s.pool.Query(ctx, `select a.guid, s.guid, s.cluster_id, coalesce((select max(l.id) from log_lines l where l.app_guid = a.guid), 0),
			coalesce(p.type, ''), coalesce(i.index, 0), coalesce(i.pod, ''), coalesce(i.pod_uid, '')
		from apps a join spaces s on s.guid = a.space_guid left join (processes p join instances i on i.process_guid = p.guid and i.pod <> '') on p.app_guid = a.guid
		where a.guid = any($1) order by p.type, i.index`, guids)
	if err != nil {
		return nil, fmt.Errorf("find log: %w", err)
	}
	places := map[string]LogPlace{}
	var place LogPlace
	var space platform.Space
	var pod LogPod
	_, err = pgx.ForEachRow(rows, []any{&place.App, &space.GUID, &place.Cluster, &place.Last, &pod.Process, &pod.Index, &pod.Name, &pod.UID}, func() error {
		place.Namespace, place.Pods = space.Namespace(), places[place.App].Pods
		if pod.Name != "" {
			place.Pods = append(place.Pods, pod)
		}
		places[place.App] = place
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find log: %w", err)
	}
	return places, nil
}

// LogNumber is the number of the last line of an app before a time.
func (s *Store) LogNumber(ctx context.Context, app string, at int64) (number int64, err error) {
	err = s.pool.QueryRow(ctx, `select coalesce(max(id), 0) from log_lines where app_guid = $1 and at < $2 and pod_uid = ''`, app, at).Scan(&number)
	if err != nil {
		return 0, fmt.Errorf("find log: %w", err)
	}
	return number, nil
}

// LogNews is what is new about the stream of an app. An app without news is gone.
type LogNews struct {
	LogPlace
	Lines []NumberedLine
}

// NumberedLine is a line with its number in the records, which grows.
type NumberedLine struct {
	platform.LogLine
	Number int64
}

const newsLines = 1000 // of an app at once; the next time brings the next

// LogNews looks after all apps at once that somebody follows: which pods they have, and lines of the records behind the number of each.
func (s *Store) LogNews(ctx context.Context, after map[string]int64) (map[string]LogNews, error) {
	guids, numbers := []string{}, []int64{}
	for app, number := range after {
		guids, numbers = append(guids, app), append(numbers, number)
	}
	places, err := s.logPlaces(ctx, guids)
	if err != nil {
		return nil, err
	}
	news := map[string]LogNews{}
	for app, place := range places {
		news[app] = LogNews{LogPlace: place}
	}
	rows, err := s.pool.Query(ctx, `select l.* from unnest($1::text[], $2::bigint[]) f(app, number) cross join lateral
		(select id, app_guid, at, source, instance, stderr, text, pod_uid from log_lines where app_guid = f.app and id > f.number order by id limit $3) l`, guids, numbers, newsLines)
	if err != nil {
		return nil, fmt.Errorf("read log news: %w", err)
	}
	var l NumberedLine
	var at int64
	_, err = pgx.ForEachRow(rows, []any{&l.Number, &l.App, &at, &l.Source, &l.Instance, &l.Stderr, &l.Text, &l.PodUID}, func() error {
		l.At = time.Unix(0, at)
		if n, there := news[l.App]; there {
			n.Lines = append(n.Lines, l)
			news[l.App] = n
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read log news: %w", err)
	}
	return news, nil
}
